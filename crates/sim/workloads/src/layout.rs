//! On which cores of a machine the threads of a run are.

use heist_sim::Machine;
use heist_sim_cases::{Placement, Workload};

/// There is a thread that submits tasks from outside for each of this many workers.
const WORKERS_PER_PRODUCER: usize = 8;

/// Returns the number of threads that submit tasks from outside.
pub(crate) fn producers(workload: Workload, workers: usize) -> usize {
    match workload {
        Workload::Outside | Workload::OutsideFar => (workers / WORKERS_PER_PRODUCER).max(1),
        _ => 0,
    }
}

/// Returns a generic machine for a run, and where its threads are: the workers in equal numbers on each socket, and other
/// threads on further cores of these sockets, or on a socket of their own.
pub(crate) fn generic(workload: Workload, workers: usize) -> (Machine, Placement) {
    let producers = producers(workload, workers);
    let far = workload == Workload::OutsideFar;
    let plain = Machine::generic(workers);
    let sockets = plain.sockets;
    let own = workers.div_ceil(sockets);
    // The main thread is on the first socket.
    let others = if far { 1 } else { producers.div_ceil(sockets) + 1 };
    let per_socket = (own + others).max(if far { producers } else { 0 });
    let machine = plain.with_sockets(sockets + usize::from(far), per_socket);
    let producer = |n: usize| match far {
        true => sockets * per_socket + n,
        false => n % sockets * per_socket + own + 1 + n / sockets,
    };
    let placement = Placement {
        workers: (0..workers).map(|n| n / own * per_socket + n % own).collect(),
        producers: (0..producers).map(producer).collect(),
        main: own,
    };
    (machine, placement)
}

/// Returns where the threads of a run are on a given machine: the workers on the first cores, then the main thread and the
/// others. Those for which no core is left share the last ones.
pub(crate) fn on(machine: &Machine, workload: Workload, workers: usize) -> Placement {
    let last = machine.cores() - 1;
    let producers = producers(workload, workers);
    let from = match workload {
        // On the last socket.
        Workload::OutsideFar => machine.cores() - producers.min(machine.cores()),
        _ => workers + 1,
    };
    Placement {
        workers: (0..workers).collect(),
        producers: (0..producers).map(|n| (from + n).min(last)).collect(),
        main: workers.min(last),
    }
}
