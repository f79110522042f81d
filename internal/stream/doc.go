// Package stream turns a YAML file into streams of traffic, and each stream
// into Ethernet frames: any stack of the protocols it knows, fields that vary
// from frame to frame, mixes of sizes, and frames that are wrong on purpose.
//
// # The file
//
//	seed: 1                     # of everything random; 1 if not given
//	streams:
//	  - name: web               # unique
//	    layers:                 # from the outside in
//	      - eth: {dst: "02:00:00:00:00:02"}
//	      - vlan: {id: {from: 100, to: 109}}
//	      - ipv4: {src: {from: 198.18.0.1, count: 1000, every: 10}, dscp: 46}
//	      - udp: {dst: [53, 123]}
//	    frame: imix             # 64; [64, 128]; {from: 64, to: 1518, step: 2}; [{size: 64, weight: 3}, ...]
//	    rate: 10kpps            # also 1Gbps-l1, 1Gbps-l2, 5%, max
//	    burst: {size: 32, gap: 1ms}
//	    count: 1000             # or time: 10s
//	    start: 100ms
//	    payload: inc            # zero, inc, random, {hex: "dead beef"}, {random: SEED}
//	    wrong: [l4-checksum]    # l3-checksum, l4-checksum, ip-length, udp-length, runt, oversize
//	    tag: true               # not given: wherever it fits
//
// A field is a value, a list of values, or {from, to | count, step, every,
// random, seed}. Frame k of the stream has the value number k / every, starting
// again after the last one; with random: true, any of them, which one only the
// seed and k decide. Numbers may be hexadecimal. YAML anchors are not read.
//
// # Determinism
//
// Frame k of a stream is a function of the file, k, the sequence number and the
// time stamp alone: the same bytes on every machine, in any order.
//
// # The tag
//
// Frames of UDP over IPv4 or IPv6 under at most two VLAN tags carry the test
// tag in the last bytes of the payload where it has room; package frame
// verifies them. All other frames are sent without it and are only counted.
// Wrong on purpose concerns the innermost IP header and what it carries; a
// tagged frame then arrives as corrupt.
package stream
