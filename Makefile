# linerate. `make` alone says what there is. Users need Go and root; the rest is for those who change things.

# Tools whose output or verdict depends on their version are pinned here and nowhere else (.ci/run reads it).
GOLANGCI_VERSION := v2.15.0
CLANG            := clang-19
CLANG_VERSION    := 19.1.7
LIBBPF_VERSION   := 1:1.1.2-0+deb12u1
CLANG_PACKAGE    := 1:19.1.7-3~deb12u1

FUZZTIME  ?= 10s
BENCHTIME ?= 1s

# A Go unpacked where its authors say is found even when PATH does not name it.
export PATH := $(PATH):/usr/local/go/bin
export GOLANGCI_VERSION CLANG CLANG_VERSION LIBBPF_VERSION FUZZTIME BENCHTIME
export BPF2GO_CC := $(CLANG)

VERSION = $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# Only the program runs as root; sudo is asked for only by those who are not.
AS_ROOT = $(shell [ "$$(id -u)" -eq 0 ] || echo 'sudo -E env PATH="$$PATH"')

.DEFAULT_GOAL := help
.PHONY: help build demo test generate bench lint fuzz check clean tools man

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build ./linerate, one static binary
	@PREFLIGHT_AGAIN='make build' scripts/preflight.sh go
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION)' -o linerate ./cmd/linerate

demo: ## build, then send over a throw-away veth pair and account for each frame: 3 s over AF_XDP, 2 s in the kernel (root)
	@PREFLIGHT_AGAIN='make demo' scripts/preflight.sh go root kernel
	@$(MAKE) --no-print-directory build
	$(AS_ROOT) ./linerate demo
	$(AS_ROOT) ./linerate demo --engine live --rate max --queues 0,1 --duration 2s

test: ## run all tests (root)
	@PREFLIGHT_AGAIN='make test' scripts/preflight.sh go root kernel
	@scripts/test.sh

generate: ## compile the BPF programs anew (clang-19)
	@scripts/generate.sh

bench: ## run the benchmarks
	@PREFLIGHT_AGAIN='make bench' scripts/preflight.sh go
	@scripts/bench.sh

man: build ## write the manual pages into ./man
	./linerate man man

lint: tools ## run golangci-lint
	@scripts/golangci.sh run ./...

fuzz: ## run every fuzz target for FUZZTIME (10s)
	@PREFLIGHT_AGAIN='make fuzz' scripts/preflight.sh go
	@scripts/fuzz.sh

check: ## format, vet, lint, import rules, generated files, shell scripts
	@PREFLIGHT_AGAIN='make check' scripts/preflight.sh go
	@scripts/check.sh

tools: ## put golangci-lint into ./bin
	@scripts/golangci.sh install

clean: ## remove what was built (not the tools in ./bin)
	rm -f linerate
	rm -rf man
	find . -name '*.test' -type f -not -path './.git/*' -delete
