#!/usr/bin/env bash
# Checks that docs/UNSAFE.md lists each module of the libraries that has unsafe blocks, with their number. The models of heist are not
# looked at.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files 'crates/deque/src/*.rs' 'crates/heist/src/*.rs' 'crates/rayon-core/src/*.rs' | grep -v '^crates/heist/src/models/' |
    perl -e '
use strict;
use warnings;
my (%there, %listed, @failures);
while (my $file = <STDIN>) {
    chomp $file;
    open my $source, "<", $file or next;
    local $/;
    my $text = <$source>;
    $text =~ s{//[^\n]*}{}g;
    my $blocks = () = $text =~ /\bunsafe\s*\{/g;
    my $impls = () = $text =~ /\bunsafe\s+impl\b/g;
    $there{$file} = "$blocks blocks and $impls impls" if $blocks + $impls;
}
open my $page, "<", "docs/UNSAFE.md" or die "unsafe: FAILED: there is no docs/UNSAFE.md\n";
my $folder = "";
while (my $line = <$page>) {
    $folder = $1 if $line =~ /^## (\S+)$/;
    $listed{"$folder/$1"} = "$2 blocks and $3 impls" if $line =~ /^\| `([^`]+)` \| (\d+) \| (\d+) \| \S.* \| \S.* \|$/;
}
for my $file (sort keys %there) {
    my $row = $listed{$file};
    if (!defined $row) { push @failures, "$file has $there{$file}, and docs/UNSAFE.md does not list it" }
    elsif ($row ne $there{$file}) { push @failures, "$file has $there{$file}, and docs/UNSAFE.md says $row" }
}
for my $file (sort keys %listed) {
    push @failures, "docs/UNSAFE.md lists $file, which has no unsafe blocks" unless $there{$file};
}
print STDERR "unsafe: FAILED: $_\n" for @failures;
exit 1 if @failures;
printf "unsafe: ok: %d modules\n", scalar keys %there;
'
