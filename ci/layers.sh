#!/usr/bin/env bash
# Checks that every module of crates/heist/src uses only modules of its own layer and of the layers below. A module that
# uses a higher layer cannot be read, or tested, without it.
#
#   ci/layers.sh [DIRECTORY]     the directory is crates/heist/src unless given
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# From the lowest to the highest. Modules in one line are one layer, and may use each other.
layers=(
    "sync order error panic cancel priority cluster topology"
    "stats"
    "trace"
    "task"
    "queues"
    "idle"
    "fork"
    "worker"
    "api"
    "parallel pipeline engine"
)

# Not checked: the root names all modules, and the models look into all of them.
free="lib models"

# Uses of a higher layer that are allowed: "FILE MODULE REASON", the file relative to the directory. Every exception must be
# in use, so that the list does not outlive its reasons.
exceptions=(
)

source=${1:-crates/heist/src}
[[ -d $source ]] || { printf 'layers: FAILED: there is no directory %s\n' "$source" >&2; exit 2; }

LAYERS=$(printf '%s\n' "${layers[@]}") FREE=$free EXCEPTIONS=$(printf '%s\n' "${exceptions[@]}") perl - "$source" <<'PERL'
use strict;
use warnings;
use File::Find;

my $root = shift;
my (%layer, %excused, @failures, $files, $uses);
my $height = 0;
for my $line (split /\n/, $ENV{LAYERS}) {
    $layer{$_} = $height for split ' ', $line;
    $height++;
}
my %free = map { $_ => 1 } split ' ', $ENV{FREE};
/^(\S+) (\S+) \S/ and $excused{"$1 $2"} = 0 for split /\n/, $ENV{EXCEPTIONS};

# The first segments of the paths in what follows `use crate::{`, up to its closing brace.
sub grouped {
    my $text = shift;
    my ($depth, @names) = (1);
    while ($text =~ /([{}])|(::)|(\w+)/g) {
        if (defined $1) { $depth += $1 eq '{' ? 1 : -1; last if $depth == 0 }
        elsif (defined $3 && $depth == 1) {
            my $before = substr $text, 0, $-[3];
            push @names, [$3, $-[3]] unless $before =~ /(::|\bas)\s*$/;
        }
    }
    return @names;
}

sub check {
    my ($path, $file, $module) = @_;
    open my $in, '<', $path or die "$path: $!";
    my $code = do { local $/; <$in> };
    # Links in comments do not count as uses, and unit tests may use any module.
    $code =~ s{//[^\n]*}{}g;
    $code =~ s{^\#\[cfg\((?:all\()?test\b[^\n]*\nmod \w+ \{.*?^\}}{"\n" x ($& =~ tr/\n//)}gems;

    my @names;
    # As many `super` as the file is deep also stand for the root of the crate.
    my $depth = () = $file =~ m{/}g;
    $depth++ unless $file =~ m{(^|/)mod\.rs$};
    my $climb = '(?:super\s*::\s*){' . $depth . '}';
    while ($code =~ /(?<![\w:])(\$?crate\s*::\s*|$climb)(\w+|\{)/g) {
        my ($start, $name, $at) = ($1, $2, $-[2]);
        my @found = $name ne '{' ? [$name, $at] : map { [$_->[0], $_->[1] + $at + 1] } grouped(substr $code, $at + 1);
        # In a module within a file `super` is that file.
        push @names, grep { $start =~ /crate/ || exists $layer{$_->[0]} } @found;
    }
    for (@names) {
        my ($name, $at) = @$_;
        next if $name eq 'super' || $name eq 'self';
        my $line = 1 + (substr($code, 0, $at) =~ tr/\n//);
        $uses++;
        if (!exists $layer{$name}) {
            # Macros and items of the root have no module. Items of a module must be named with that module.
            push @failures, "$path:$line: `crate::$name` is in no layer: name the module that defines it, or add it to the table";
        } elsif ($layer{$name} > $layer{$module}) {
            if (exists $excused{"$file $name"}) { $excused{"$file $name"}++; next }
            push @failures, "$path:$line: `$module` uses `$name`, which is a higher layer";
        }
    }
    $files++;
}

find({ no_chdir => 1, wanted => sub {
    return unless /\.rs$/;
    my $file = substr $_, 1 + length $root;
    my ($module) = $file =~ m{^(\w+)};
    return if $free{$module};
    if (!exists $layer{$module}) {
        push @failures, "$_: `$module` is in no layer: add it to the table in ci/layers.sh";
        return;
    }
    check($_, $file, $module);
} }, $root);

push @failures, "the exception `$_` is not in use: remove it" for grep { !$excused{$_} } sort keys %excused;
if (@failures) {
    print STDERR "layers: $_\n" for sort @failures;
    print STDERR "layers: FAILED: ", scalar @failures, " findings; the order of the layers is at the top of ci/layers.sh\n";
    exit 1;
}
die "layers: FAILED: nothing was checked\n" unless $files && $uses;
print "layers: ok: $uses uses in $files files\n";
PERL
