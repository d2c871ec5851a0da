# SPDX-License-Identifier: Apache-2.0
# The commands people type. How things are built stands in meson.build, how they are checked in tools/.

PREFIX  ?= /usr/local
LIBDIR  ?= lib
DESTDIR ?=
SUITE   ?=
TEST    ?=
FUZZ_SECONDS ?= 5
export FUZZ_SECONDS

.PHONY: all check tidy format serve tour bench soak coverage install clean help
.NOTPARALLEL:

all:
	@tools/configure build --without-tests
	@ninja -C build shipped

check:
	@tools/install-packages check
	@tools/check --suite "$(SUITE)" --test "$(TEST)"

tidy:
	@tools/tidy

format:
	@find include src sim bench tests tools -name '*.[ch]' | xargs clang-format -i

serve:
	@tools/install-packages serve
	@echo 'building build/reprieve'
	@tools/configure build --without-tests
	@ninja -C build reprieve
	@echo 'running build/reprieve serve'
	@exec build/reprieve serve

tour:
	@tools/install-packages tour
	@tools/configure build --without-tests
	@ninja -C build reprieve
	@PATH="$(CURDIR)/build:$$PATH" tools/tour
	@PATH="$(CURDIR)/build:$$PATH" tools/tour-http

bench:
	@tools/install-packages bench
	@tools/configure build-release
	@ninja -C build-release meson-benchmark-prereq
	@tests/lib/with-postgres tests/lib/with-ceph meson test -C build-release --benchmark --verbose

soak:
	@tools/install-packages soak
	@tools/configure build-release
	@ninja -C build-release sim/sim reprieve
	@CATALOG=postgres REPRIEVE_BIN="$(CURDIR)/build-release/reprieve" REPRIEVE_TREE="$(CURDIR)" tests/scenario/fail_over_by_patroni
	@exec build-release/sim/sim --soak $(if $(FROM),--from $(FROM)) --jobs $$(nproc)

coverage:
	@tools/install-packages check
	@tools/coverage

install:
	@tools/configure build --without-tests
	@meson configure build -Dprefix="$(PREFIX)" -Dlibdir="$(LIBDIR)"
	@ninja -C build shipped
	@DESTDIR="$(DESTDIR)" meson install -C build --no-rebuild

clean:
	rm -rf build build-clang build-asan build-tsan build-fuzz build-release build-coverage build-mutate build-check

help:
	@echo 'make            builds build/reprieve and build/libreprieve.{a,so}'
	@echo 'make check      everything: tidy, gcc, clang, sanitizers, fuzzing, scenarios, crashes'
	@echo '                  SUITE=unit      only that suite (unit contract fault scenario load crash threads fuzz models sim)'
	@echo '                  TEST=test_db    only that test'
	@echo '                  FUZZ_SECONDS=5  time for each fuzz target'
	@echo 'make tidy       format, lint, layering, lengths, scripts, mutants, packages'
	@echo 'make format     rewrites the C files as clang-format wants them'
	@echo 'make serve      installs what serving needs, builds, and runs the daemon on the embedded default (./reprieve-data)'
	@echo 'make tour       sixty seconds with the command line, then with the daemon and curl, in directories of their own'
	@echo 'make bench      installs what is missing and runs the benchmarks, in a release build'
	@echo 'make soak       ten fail-overs of PostgreSQL under Patroni (FAILOVERS=n), then the simulator until it is stopped (FROM=seed)'
	@echo 'make coverage   which branches of the rules and the catalog the tests take, and which they do not'
	@echo 'make install    builds what `make` does and installs it: PREFIX=/usr/local, LIBDIR=lib, DESTDIR='
	@echo 'make clean      removes all build directories'
