# The words of ./dev, for those who have just. It runs where you stand.
set positional-arguments

dev := justfile_directory() / "dev"

_default:
    @just --list --unsorted

# All tests, or with --quick those without servers and Spark; arguments are pytest's
[no-cd]
test *arguments:
    @"{{ dev }}" test "$@"

# ruff, mypy and the rules about imports
lint:
    @"{{ dev }}" lint

# One of the benchmarks in bench/
[no-cd]
bench *arguments:
    @"{{ dev }}" bench "$@"

# Builds the documentation
[no-cd]
docs *arguments:
    @"{{ dev }}" docs "$@"

# penstock run
[no-cd]
run *arguments:
    @"{{ dev }}" run "$@"

# Any other word of penstock
[no-cd]
penstock *arguments:
    @"{{ dev }}" "$@"
