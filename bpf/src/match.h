/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which frames are ours: those with our tag, or what the configuration names. */
#ifndef LINERATE_MATCH_H
#define LINERATE_MATCH_H

#define MACS_MAX 16

/* Any one that holds makes the frame ours. */
enum match {
	MATCH_TAG = 1 << 0,
	MATCH_ALL = 1 << 1,
	MATCH_PORTS = 1 << 2, /* UDP destination port */
	MATCH_VLANS = 1 << 3, /* either VLAN tag */
	MATCH_MACS = 1 << 4,  /* destination address */
};

const volatile enum match match_flags = MATCH_TAG;
const volatile __u64 match_ports[65536 / 64] = {};
const volatile __u64 match_vlans[4096 / 64] = {};
/* 6 bytes as they lie in the frame, in the low bytes of a little-endian word. */
const volatile __u64 match_macs[MACS_MAX] = {};
const volatile __u32 match_mac_count = 0;

static __always_inline int match_mac(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u64 mac;

	if (data + 14 > end)
		return 0;
	mac = *(__u64 *)data & bpf_cpu_to_be64(0xffffffffffff0000ULL);
	for (int i = 0; i < MACS_MAX; i++) {
		if (i >= match_mac_count)
			return 0;
		if (match_macs[i] == mac)
			return 1;
	}
	return 0;
}

/* ours judges a parsed frame; reason is what parse returned. */
static __always_inline int ours(struct xdp_md *ctx, const struct facts *f, int reason)
{
	if (match_flags & MATCH_ALL)
		return 1;
	if ((match_flags & MATCH_TAG) && !reason)
		return 1;
	if ((match_flags & MATCH_PORTS) && f->udp &&
	    (match_ports[(f->dport >> 6) & 1023] >> (f->dport & 63) & 1))
		return 1;
	if (match_flags & MATCH_VLANS) {
#pragma unroll
		for (int i = 0; i < VLANS_MAX; i++)
			if (i < f->nvlan &&
			    (match_vlans[(f->vlan[i] >> 6) & 63] >> (f->vlan[i] & 63) & 1))
				return 1;
	}
	return (match_flags & MATCH_MACS) && match_mac(ctx);
}

#endif
