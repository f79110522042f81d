// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Sends our frames back where they came from: addresses and ports swapped, and
 * the tag's check with them, so that they verify at their sender.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "verdict.h"
#include "parse.h"
#include "match.h"

#define FCS_BYTES 4

/* What byte b contributes to a tag's check when d bytes follow it. */
const volatile __u16 crc_at[54][256] = {};

struct reflect_counters {
	__u64 frames[REASON_COUNT];
	__u64 bytes; /* with FCS, of the frames under REASON_DROPPED: sent back */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, QUEUES_MAX + 1);
	__type(key, __u32);
	__type(value, struct reflect_counters);
} counters SEC(".maps");

static __always_inline void swap_macs(__u8 *eth)
{
	__u32 a = *(__u32 *)eth, b = *(__u32 *)(eth + 6);
	__u16 c = *(__u16 *)(eth + 4), d = *(__u16 *)(eth + 10);

	*(__u32 *)eth = b;
	*(__u16 *)(eth + 4) = d;
	*(__u32 *)(eth + 6) = a;
	*(__u16 *)(eth + 10) = c;
}

/*
 * swap_addresses swaps addresses of n bytes and, with them, ports. What that
 * changes in the check of a tag is the sum of what each byte changed
 * contributes: the CRC is linear.
 */
static __always_inline __u16 swap_addresses(__u8 *addr, __u8 *ports, const int n, const int tail)
{
	__u16 diff = 0;

#pragma unroll
	for (int i = 0; i < n; i++) {
		__u8 a = addr[i], b = addr[i + n];

		addr[i] = b;
		addr[i + n] = a;
		diff ^= crc_at[tail + 2 * n + 3 - i][a ^ b] ^ crc_at[tail + n + 3 - i][a ^ b];
	}
#pragma unroll
	for (int i = 0; i < 2; i++) {
		__u8 a = ports[i], b = ports[i + 2];

		ports[i] = b;
		ports[i + 2] = a;
		diff ^= crc_at[tail + 3 - i][a ^ b] ^ crc_at[tail + 1 - i][a ^ b];
	}
	return diff;
}

/* patch changes the tag's check, 2 bytes at off, and the UDP checksum after it. */
static __always_inline int patch(struct xdp_md *ctx, __u32 udp, __u32 off, __u16 diff)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u16 old, new, *check, *sum;
	__u32 s;

	if (off > UDP_LEN_MAX)
		return -1;
	sum = data + udp + 6;
	KEEP_WHOLE(off);
	check = data + off;
	if ((void *)(sum + 1) > end || (void *)(check + 1) > end)
		return -1;
	old = *check;
	new = old ^ bpf_htons(diff);
	*check = new;
	if (!*sum)
		return 0;
	if ((off - udp) & 1) {
		old = old << 8 | old >> 8;
		new = new << 8 | new >> 8;
	}
	s = (__u16)~*sum + (__u16)~old + new;
	s = (s & 0xffff) + (s >> 16);
	s = (s & 0xffff) + (s >> 16);
	s = (__u16)~s;
	*sum = s ? s : 0xffff;
	return 0;
}

/* turn_at turns a frame around whose IP header is at l3. */
static __always_inline int turn_at(struct xdp_md *ctx, const int l3, const int v6, __u64 identity,
				   int tagged)
{
	const int hl = v6 ? 40 : 20, n = v6 ? 16 : 4;
	__u8 *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u8 *ip = data + l3, *udp = ip + hl, *addr = v6 ? ip + 8 : ip + 12;
	__u32 len;
	__u16 diff;

	if ((void *)(udp + 8) > end)
		return -1;
	if (v6 ? ip[6] != PROTO_UDP : (ip[0] != 0x45 || ip[9] != PROTO_UDP))
		return -1; /* options or extension headers: the ports are elsewhere */
	len = bpf_ntohs(*(__be16 *)(udp + 4));
	if (identity & TAG_SHORT_IDENTITY)
		diff = swap_addresses(addr, udp, n, TAG_SHORT_BYTES);
	else
		diff = swap_addresses(addr, udp, n, TAG_LONG_BYTES);
	swap_macs(data);
	if (!tagged)
		return 0;
	return patch(ctx, l3 + hl, l3 + hl + len - 2, diff);
}

static __always_inline int turn(struct xdp_md *ctx, const struct facts *f, int tagged)
{
	__u8 *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;

	if ((void *)(data + 14) > end)
		return -1;
	if (!f->udp) {
		swap_macs(data);
		return 0;
	}
	if (f->l3 == 4)
		return f->nvlan == 0   ? turn_at(ctx, 14, 0, f->identity, tagged)
		       : f->nvlan == 1 ? turn_at(ctx, 18, 0, f->identity, tagged)
				       : turn_at(ctx, 22, 0, f->identity, tagged);
	return f->nvlan == 0   ? turn_at(ctx, 14, 1, f->identity, tagged)
	       : f->nvlan == 1 ? turn_at(ctx, 18, 1, f->identity, tagged)
			       : turn_at(ctx, 22, 1, f->identity, tagged);
}

SEC("xdp")
int reflect(struct xdp_md *ctx)
{
	__u32 slot = counter_slot(ctx);
	struct reflect_counters *c = bpf_map_lookup_elem(&counters, &slot);
	struct facts f = {};
	int reason;

	if (!c)
		return XDP_PASS;
	c->frames[REASON_SEEN]++;
	reason = parse(ctx, &f);
	if (!ours(ctx, &f, reason)) {
		c->frames[reason ? reason : REASON_NOT_MATCHED]++;
		return XDP_PASS;
	}
	if (lose(&c->frames[REASON_SEEN]))
		return XDP_DROP;
	/* identity is of a tag of whatever run: a frame of another run is turned as well if it is asked for. */
	if (turn(ctx, &f, !reason || reason == REASON_OTHER_RUN)) {
		c->frames[REASON_EXT_CHAIN]++;
		return XDP_PASS;
	}
	c->frames[REASON_DROPPED]++;
	c->bytes += bpf_xdp_get_buff_len(ctx) + FCS_BYTES;
	return XDP_TX;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
