package report

import (
	"fmt"
	"strings"

	"linerate/internal/budget"
)

// Code names one kind of warning.
type Code string

// The codes of the warnings. Codes says what each one means.
const (
	WarnLossAny                = Code("loss_any")
	WarnTailUnknown            = Code("tail_unknown")
	WarnLinkEvent              = Code("link_event")
	WarnWorkerStopped          = Code("worker_stopped")
	WarnRunBroken              = Code("run_broken")
	WarnHeldFrames             = Code("held_frames")
	WarnModeFallback           = Code("mode_fallback")
	WarnCarrierWait            = Code("carrier_wait")
	WarnShortTag               = Code("short_tag")
	WarnLossNotJudged          = Code("loss_not_judged")
	WarnUntagged               = Code("untagged")
	WarnReplayed               = Code("replayed")
	WarnReplayStarved          = Code("replay_starved")
	WarnCaptured               = Code("captured")
	WarnForeignSequence        = Code("foreign_sequence")
	WarnStalls                 = Code("stalls")
	WarnRateError              = Code("rate_error")
	WarnBurst                  = Code("burst")
	WarnOwnQueueLatency        = Code("own_queue_latency")
	WarnNoLatencyClock         = Code("no_latency_clock")
	WarnSampledLatency         = Code("sampled_latency")
	WarnStageWithoutCounter    = Code("stage_without_counter")
	WarnCounterFault           = Code("counter_fault")
	WarnInexactRow             = Code("inexact_row")
	WarnCounterDrift           = Code("counter_drift")
	WarnCorruptIdentity        = Code("corrupt_identity")
	WarnTracepointsUnavailable = Code("tracepoints_unavailable")
	WarnHugepageFallback       = Code("hugepage_fallback")
	WarnMemlock                = Code("memlock")
	WarnTxBudgetUnsupported    = Code("tx_budget_unsupported")
	WarnClockTrouble           = Code("clock_trouble")
	WarnCPUSharedSoftirq       = Code("cpu_shared_softirq")
	WarnCPUUnpinned            = Code("cpu_unpinned")
	WarnCPUSampled             = Code("cpu_sampled")
	WarnStackTraffic           = Code("stack_traffic")
	WarnForeign                = Code("foreign")
	WarnKernelDrops            = Code("kernel_drops")
	WarnInterrupted            = Code("interrupted")
	WarnLineRateExceeded       = Code("line_rate_exceeded")
	WarnLiveNotTaken           = Code("live_not_taken")
	WarnUnjudged               = Code("unjudged")
	WarnAnswered               = Code("answered")
	WarnAnswersFailed          = Code("answers_failed")
	WarnQueueMismatch          = Code("queue_mismatch")
)

// CodeDefinition is the entry of one code. Text and Remedy are formats; the
// arguments of Warn fill Text, and a Remedy has none.
type CodeDefinition struct {
	Code Code
	// Invalidates says that the run is worth nothing with this warning.
	Invalidates bool
	Text        string
	Remedy      string
}

// Codes returns every warning there is: the single source for the documents and
// the documentation. The slice is the caller's own.
func Codes() []CodeDefinition {
	return append(validCodes(), invalidCodes()...)
}

// invalidCodes are the warnings that make a run worthless.
func invalidCodes() []CodeDefinition {
	return []CodeDefinition{
		{WarnTailUnknown, true, "lost at least %d, tail unknown: no END frame from %d of %d sequence spaces", "start the sink before the sender and let the sender end by itself, or measure with `linerate run`"},
		{WarnLinkEvent, true, "%s at %s during the run", "find out what touched the interface, and run again"},
		{WarnWorkerStopped, true, "the worker on %s stopped early: %s", "do what the error asks for, and run again"},
		{WarnRunBroken, true, "the run could not be counted to its end: %s", "put right what it says, and run again"},
		{WarnHeldFrames, true, "%d frames stood in device rings when %s emptied them and cannot be counted", "run again without the event"},
		{WarnClockTrouble, true, "the clock %s", "stop what sets the clock during a run, and run again"},
		{WarnCounterDrift, true, "the counters did not stand still %s: %d frames went by between two readings", "stop other traffic on the port, start a sink before its sender, and lengthen --settle"},
		{WarnStageWithoutCounter, true, "%s has no counter here: unexplained is unknown", "measure with an engine or a driver that counts this stage (`linerate help run`)"},
	}
}

// validCodes are the warnings that leave a run valid.
func validCodes() []CodeDefinition {
	return []CodeDefinition{
		{WarnLossAny, false, "any loss passes: --max-loss any is the default of %s", "give --max-loss 0 to fail on loss"},
		{WarnModeFallback, false, "%s runs in %s mode, not %s: %s", "require the mode with --mode to make this an error; `linerate doctor` says why"},
		{WarnCarrierWait, false, "%s had no carrier for %s after attaching", "nothing to do: the time is not part of the run"},
		{WarnShortTag, false, "%s carries the short tag: no time stamp, so no latency (the long one wants %d bytes)", "larger --frame"},
		{WarnLossNotJudged, false, "--action %s verifies nothing: loss is not judged", "--action verify"},
		{WarnUntagged, false, "%s is too small for a tag: counted only, not verified", "use larger frames; `linerate ceiling` prints the least size"},
		{WarnReplayed, false, "%d frames of %s carry no tag: they are counted at each end, and none is told from another", "verify with frames of linerate's own, without --pcap"},
		{WarnReplayStarved, false, "the disk was %d times not ready when frames were due: what was sent is what it sustains", "load the capture before, without --pcap-stream"},
		{WarnCaptured, false, "%d frames were kept (%s), %d that were wanted had no place", "raise N of --capture"},
		{WarnForeignSequence, false, "the numbers are those of %s, which does not say how many it sent: lost is between the first seen and the last", "start the sink first, and look at what the generator says it sent"},
		{WarnStalls, false, "the sender was off its CPU %d times, %s in all, the longest %s", "name quieter cores with --cores"},
		{WarnRateError, false, "the offered rate is off by %.2f %%", "lower --rate, add queues, or allow it with --max-rate-error"},
		{WarnBurst, false, "%d windows of 100 us held more than rate x 100 us + 2 frames", "give the workers cores of their own with --cores"},
		{WarnOwnQueueLatency, false, "latency includes the sender's own queue: the TX ring was over a quarter full", "lower --rate to measure the path alone"},
		{WarnNoLatencyClock, false, "no latency: %s", "measure with both ends on one host"},
		{WarnSampledLatency, false, "1 frame in %d carries a time stamp", "give --stamp all, at the cost of rate"},
		{WarnCounterFault, false, "counter %s is off by %+d: its neighbours agree without it", "report this driver and kernel"},
		{WarnInexactRow, false, "%s is exact only if %s", "check the precondition"},
		{WarnCorruptIdentity, false, "a frame whose identity was destroyed counts as lost and as foreign: %d of both may be one", "nothing to do"},
		{WarnTracepointsUnavailable, false, "driver drops without a counter cannot be traced: %s", "grant CAP_PERFMON and run a kernel with BTF"},
		{WarnHugepageFallback, false, "no hugepages for the UMEM: %s", "reserve them: sysctl vm.nr_hugepages"},
		{WarnMemlock, false, "RLIMIT_MEMLOCK is %d bytes and was too low", "raise it: ulimit -l unlimited"},
		{WarnTxBudgetUnsupported, false, "the kernel has no XDP_MAX_TX_SKB_BUDGET: %d frames per kick", "use Linux 6.17 or later for fewer, larger kicks"},
		{WarnCPUSharedSoftirq, false, "the receiver's softirq ran on the sender's core: the cost per end is unknown", "make the lab's NAPI threaded and pin it"},
		{WarnCPUUnpinned, false, "worker of queue %d is not pinned: %s", "give --cores"},
		{WarnCPUSampled, false, "CPU time is tick-sampled: +-%.1f %%", "grant CAP_PERFMON for exact figures"},
		{WarnStackTraffic, false, "the host's own stack sent %d frames on the port", "take addresses and services off the port"},
		{WarnForeign, false, "%d frames of others reached the sink", "keep other senders off the link"},
		{WarnKernelDrops, false, "the kernel discarded %d frames of %s: %s", "look the reason up in include/net/dropreason-core.h"},
		{WarnInterrupted, false, "interrupted after %s: the result is partial", "let the run end by itself"},
		{WarnAnswered, false, "%s answered %d ARP requests, %d neighbour solicitations and %d pings for the stream's addresses and announced them %d times", "nothing to do: these are outside the offered load (--answer=false to keep silent)"},
		{WarnQueueMismatch, false, "%d frames came to other receive queues of %s than predicted: %s", "see what spreads them: ethtool -x for the table, ethtool -n for filters and hashed fields"},
		{WarnAnswersFailed, false, "%s that answer or announce addresses were not taken by %s", "lower --rate, or give the device a static neighbour entry"},
		{WarnLineRateExceeded, false, "%s exceeds line rate: %s is not a physical link", "nothing to do: `max` is unlimited on virtual links"},
		{WarnLiveNotTaken, true, "%s took none of %d live frames: its peer has neither XDP nor GRO", "receive with --rx-engine xdp or xsk, or turn GRO on at the peer: ethtool -K PEER gro on"},
		{WarnUnjudged, false, "%d frames were not plainly good and came faster than user space could judge them", "send less of what is not good, or receive with --rx-engine xsk"},
	}
}

// DefinitionOf returns the entry of a code.
func DefinitionOf(code Code) (CodeDefinition, bool) {
	for _, d := range Codes() {
		if d.Code == code {
			return d, true
		}
	}
	return CodeDefinition{}, false
}

// Warn makes the warning of a code; args fill its text. An unknown code keeps
// its arguments, so that nothing is swallowed.
func Warn(code Code, args ...any) Warning {
	d, known := DefinitionOf(code)
	if !known {
		return Warning{Code: code, Text: strings.TrimSpace(fmt.Sprintln(args...))}
	}
	return Warning{Code: code, Text: fmt.Sprintf(d.Text, args...), Remedy: d.Remedy}
}

// Invalidating returns the warnings that make a run worthless, as Judge wants
// them.
func Invalidating(warnings []Warning) []budget.Reason {
	var reasons []budget.Reason
	for _, w := range warnings {
		if d, known := DefinitionOf(w.Code); known && d.Invalidates {
			reasons = append(reasons, budget.Reason{Code: string(w.Code), Text: w.Text})
		}
	}
	return reasons
}
