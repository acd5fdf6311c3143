"""The parts of `bench_cpu.py`: rows, networks, peers, and the limits of the machine."""
