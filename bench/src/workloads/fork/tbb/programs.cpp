// oneTBB: the programs of fib.rs, nqueens.rs and uts/light.rs, call for call.
//
// A fork is a task_group: it runs one part, this thread calls the other part, and then waits for the group. Of the
// ways that its documentation offers (parallel_invoke, two runs and a wait, run_and_wait), this is the fastest.

#include <cstdint>
#include <map>
#include <memory>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/version.h>

namespace {

template <class A, class B> std::uint64_t add(A a, B b) {
    std::uint64_t of_a, of_b;
    tbb::task_group group;
    group.run([&] { of_b = b(); });
    of_a = a();
    group.wait();
    return of_a + of_b;
}

// Calls a function where it may fork, with this number of workers, of which the calling thread is one. Arenas are
// kept. Only one thread calls this.
template <class F> std::uint64_t run(int workers, std::size_t stack, F f) {
    static tbb::global_control stacks(tbb::global_control::thread_stack_size, stack);
    static std::map<int, std::unique_ptr<tbb::task_arena>> arenas;
    auto &arena = arenas[workers];
    if (!arena) arena = std::make_unique<tbb::task_arena>(workers);
    return arena->execute(f);
}

std::uint64_t fib(std::uint64_t n) {
    if (n < 2) return n;
    return add([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
}

struct Board {
    std::uint32_t free, left, right;

    std::uint32_t choices() const { return free & ~(left | right); }

    Board with(std::uint32_t column) const {
        return {free & ~column, (left | column) << 1, (right | column) >> 1};
    }
};

std::uint64_t count(Board board);

std::uint64_t among(Board board, std::uint32_t choices) {
    if ((choices & (choices - 1)) == 0) return count(board.with(choices));
    int lowest = __builtin_ctz(choices), highest = 31 - __builtin_clz(choices);
    std::uint32_t low = choices & ((1u << (lowest + highest + 1) / 2) - 1), high = choices ^ low;
    return add([=] { return among(board, low); }, [=] { return among(board, high); });
}

std::uint64_t count(Board board) {
    if (board.free == 0) return 1;
    std::uint32_t choices = board.choices();
    return choices == 0 ? 0 : among(board, choices);
}

struct Tree {
    std::uint64_t seed, limit;
    std::uint32_t root, children;

    std::uint32_t below(std::uint64_t node) const {
        return node == seed ? root : node < limit ? children : 0;
    }

    static std::uint64_t child(std::uint64_t node, std::uint32_t index) {
        std::uint64_t z = (node + index + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
};

std::uint64_t visit(const Tree &tree, std::uint64_t node);

std::uint64_t below(const Tree &tree, std::uint64_t parent, std::uint32_t from, std::uint32_t to) {
    if (to - from == 1) return visit(tree, Tree::child(parent, from));
    std::uint32_t middle = from + (to - from) / 2;
    return add([=, &tree] { return below(tree, parent, from, middle); },
               [=, &tree] { return below(tree, parent, middle, to); });
}

std::uint64_t visit(const Tree &tree, std::uint64_t node) {
    std::uint32_t children = tree.below(node);
    return children == 0 ? 1 : 1 + below(tree, node, 0, children);
}

} // namespace

extern "C" {

const char *heist_bench_tbb_version() noexcept { return TBB_runtime_version(); }

std::uint64_t heist_bench_tbb_fib(int workers, std::size_t stack, std::uint64_t n) noexcept {
    return run(workers, stack, [=] { return fib(n); });
}

std::uint64_t heist_bench_tbb_queens(int workers, std::size_t stack, std::uint32_t queens) noexcept {
    return run(workers, stack, [=] { return count({(1u << queens) - 1, 0, 0}); });
}

std::uint64_t heist_bench_tbb_light(int workers, std::size_t stack, std::uint64_t seed,
                                    std::uint64_t limit, std::uint32_t root,
                                    std::uint32_t children) noexcept {
    Tree tree{seed, limit, root, children};
    return run(workers, stack, [&] { return visit(tree, tree.seed); });
}
}
