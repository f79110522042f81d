// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Makes frames in the kernel: BPF_PROG_TEST_RUN with live frames runs this once
 * for each frame, and what it redirects is sent (net/bpf/test_run.c,
 * xdp_test_run_batch). One instance and one thread a worker, so nothing here is
 * shared.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define HEAD_MAX 88  /* Ethernet, 2 VLAN tags, IPv6, UDP, and what rounds it up to 8 */
#define SEQ_BYTE 6   /* of the tag: the first of the sequence number */
#define TAG_BYTES 18
#define FLAG_STAMP 2
#define SPINS 32     /* looks at the clock before a frame is given up as padding */
#define GRANT 64     /* frames between two looks at the clock when there is no rate */
#define DEBT_NS 1000000ULL
#define SECOND 1000000000ULL
#define PERMIT (100 * SECOND) /* rate x ns of one frame: exact for each hundredth of a frame a second */

const volatile __u32 ifindex = 0;
const volatile __u32 frame_len = 0; /* FCS not included */
const volatile __u32 head_len = 0;  /* up to the UDP payload */
const volatile __u32 l3 = 0;        /* offset of the IP header */
const volatile __u8 v6 = 0;
const volatile __u8 macs = 0;       /* flows differ in their MAC addresses */
const volatile __u8 odd = 0;        /* the tag begins at an odd payload offset */
const volatile __u64 fixed = 0;     /* magic, run and space of the tag, in place */
const volatile __u32 stamp_every = 64;
const volatile __u32 flow_count = 1;
/* For the frame budget's own test only: that many frames vanish, uncounted. */
const volatile __u32 lose_offered = 0;   /* granted, and never made */
const volatile __u32 lose_submitted = 0; /* counted as sent, and never redirected */
const volatile __u8 head[HEAD_MAX] = {}; /* the first bytes of a frame */
/* What each changing byte of the tag contributes to its check. */
const volatile __u16 crc_at[10][256] = {};

/* The offer, set before a trial. */
struct live_offer {
	__u64 start_ns;
	__u64 deadline_ns; /* 0: none */
	__u64 count;       /* 0: no limit */
	__u64 rate;        /* frames in 100 s; 0: as fast as the path takes them */
};

/* What the worker is at. Others read it while it runs. */
struct live_progress {
	__u64 sent;    /* frames redirected, and so the next sequence number */
	__u64 granted; /* frames that may have been sent by now */
	__u64 part;    /* of a permit, PERMIT is one */
	__u64 thrown;  /* permits over a millisecond old: unsent */
	__u64 pad;     /* runs that made no frame */
	__u64 bad;     /* runs on a page that is not as it was made */
	__u64 clock_ns;
	__u64 first_ns;
	__u64 last_ns;  /* last look at the clock before a frame */
	__u64 stalls;   /* looks at the clock over 200 us apart */
	__u64 stall_ns;
	__u64 longest_ns;
	__u32 flow;
	__u32 done;
	__u32 crc_high; /* of the three upper bytes of the sequence number */
	__u32 lost_offered;
	__u32 lost_submitted;
	__u32 reserved;
};

struct live_offer offer = {};
struct live_progress progress = {};
__u32 stop = 0;
__u64 ends = 0; /* END frames redirected */

struct flow {
	__u8 mac[12];
	__u8 addr[36]; /* addresses and ports as in the frame: 12 bytes, or 36 */
	__u16 l3_check; /* as in the frame */
	__u16 l4_sum;   /* of all but sequence, time, flags and tag check; as loaded */
	__u16 tag_check; /* with those 0; as a number */
	__u16 reserved[5];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow);
} flows SEC(".maps");

static __always_inline __u16 fold(__u64 s)
{
	s = (s & 0xffffffff) + (s >> 32);
	s = (s & 0xffff) + (s >> 16);
	s = (s & 0xffff) + (s >> 16);
	return (s & 0xffff) + (s >> 16);
}

/* taken is how many permits of the offer have been used up, one way or another. */
static __always_inline __u64 taken(const struct live_progress *p)
{
	return p->sent + p->thrown + p->lost_offered;
}

/* grant looks at the clock and says whether a frame is due. */
static __always_inline int grant(struct live_progress *p, __u64 now)
{
	__u64 gap = now - p->clock_ns;

	if (now < offer.start_ns)
		return 0;
	if (p->clock_ns && gap > 200000) {
		p->stalls++;
		p->stall_ns += gap;
		if (gap > p->longest_ns)
			p->longest_ns = gap;
	}
	if (!p->clock_ns) {
		/* The kernel may take long to begin: then the offer is as long, and later. */
		if (offer.deadline_ns)
			offer.deadline_ns += now - offer.start_ns;
		offer.start_ns = now;
		gap = 0;
	}
	p->clock_ns = now;
	if (offer.deadline_ns && now >= offer.deadline_ns) {
		p->done = 1;
		return 0;
	}
	if (!offer.rate) {
		p->granted = p->sent + GRANT;
	} else {
		__u64 most = DEBT_NS * offer.rate / PERMIT + 1;
		__u64 owed;

		/* Seconds apart: their product with the rate may overflow. */
		p->part += gap / SECOND * (offer.rate % 100) * SECOND + gap % SECOND * offer.rate;
		p->granted += gap / SECOND * (offer.rate / 100) + p->part / PERMIT;
		p->part %= PERMIT;
		owed = p->granted - p->sent;
		if (owed > most) {
			owed -= most;
			p->granted -= owed;
			if (offer.count && owed > offer.count - taken(p))
				owed = offer.count - taken(p);
			p->thrown += owed;
		}
	}
	return p->granted > p->sent && !(offer.count && taken(p) >= offer.count);
}

/* due says whether this run is to make a frame. */
static __always_inline int due(struct live_progress *p)
{
	if (p->done || stop)
		return 0;
	if (offer.count && taken(p) >= offer.count) {
		p->done = 1;
		return 0;
	}
	if (p->sent < p->granted)
		return 1;
	for (int i = 0; i < SPINS; i++)
		if (grant(p, bpf_ktime_get_ns()))
			return 1;
		else if (p->done || stop)
			return 0;
	return 0;
}

SEC("xdp")
int live(struct xdp_md *ctx)
{
	struct live_progress *p = &progress;
	__u8 *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u64 seq, w0, w1 = 0, sum;
	struct flow *f;
	__u32 key, tag = frame_len - TAG_BYTES, addr = v6 ? l3 + 8 : l3 + 12;
	__u16 check, var;

	if ((void *)(data + frame_len) > end || frame_len < 60) {
		p->bad++;
		return XDP_ABORTED;
	}
	if (!due(p)) {
		p->pad++;
		return XDP_DROP;
	}
	if (p->lost_offered < lose_offered) {
		p->lost_offered++;
		p->granted--;
		return XDP_DROP;
	}
	key = p->flow;
	if (flow_count > 1)
		p->flow = key + 1 < flow_count ? key + 1 : 0;
	f = bpf_map_lookup_elem(&flows, &key);
	if (!f) {
		p->bad++;
		return XDP_ABORTED;
	}
	seq = p->sent;
	if (!p->first_ns)
		p->first_ns = p->clock_ns;
	p->last_ns = p->clock_ns;
	/* 1. The headers, all of them: whoever had the page last may have changed it. */
#pragma unroll
	for (int i = 0; i < HEAD_MAX; i += 8)
		if (i < head_len)
			*(__u64 *)(data + i) = *(volatile __u64 *)(head + i);
	if (macs) {
		*(__u64 *)data = *(__u64 *)f->mac;
		*(__u32 *)(data + 8) = *(__u32 *)(f->mac + 8);
	}
	if (v6) {
#pragma unroll
		for (int i = 0; i < 36; i += 4)
			*(__u32 *)(data + addr + i) = *(__u32 *)(f->addr + i);
	} else {
#pragma unroll
		for (int i = 0; i < 12; i += 4)
			*(__u32 *)(data + addr + i) = *(__u32 *)(f->addr + i);
		*(__u16 *)(data + l3 + 10) = f->l3_check;
	}
	/* 2. The tag. */
	check = f->tag_check;
	w1 = seq << 40;
	if (!(seq & 0xffff))
		p->crc_high = crc_at[0][seq >> 32 & 0xff] ^ crc_at[1][seq >> 24 & 0xff] ^
			      crc_at[2][seq >> 16 & 0xff];
	check ^= p->crc_high ^ crc_at[3][seq >> 8 & 0xff] ^ crc_at[4][seq & 0xff];
	if (stamp_every && !(seq & (stamp_every - 1))) {
		__u64 now = bpf_ktime_get_ns();
		__u32 t = now >> 6;

		w1 |= (__u64)t << 8 | FLAG_STAMP;
		check ^= crc_at[5][t >> 24] ^ crc_at[6][t >> 16 & 0xff] ^
			 crc_at[7][t >> 8 & 0xff] ^ crc_at[8][t & 0xff] ^ crc_at[9][FLAG_STAMP];
	}
	w0 = fixed | (seq >> 24 & 0xffff);
	w0 = bpf_cpu_to_be64(w0);
	w1 = bpf_cpu_to_be64(w1);
	check = bpf_htons(check);
	*(__u64 *)(data + tag) = w0;
	*(__u64 *)(data + tag + 8) = w1;
	*(__u16 *)(data + tag + 16) = check;
	/* 3. The UDP checksum: what is fixed, and the words of the tag that are not. */
	sum = (w0 >> 48) + (w1 & 0xffffffff) + (w1 >> 32) + check; /* w0: the sequence number's part */
	var = fold(sum);
	if (odd)
		var = var << 8 | var >> 8;
	check = ~fold((__u64)f->l4_sum + var);
	*(__u16 *)(data + head_len - 2) = check ? check : 0xffff;
	p->sent = seq + 1;
	if (p->lost_submitted < lose_submitted) {
		p->lost_submitted++;
		return XDP_DROP;
	}
	return bpf_redirect(ifindex, 0);
}

/* Sends what it was given: END frames. */
SEC("xdp")
int live_end(struct xdp_md *ctx)
{
	ends++;
	return bpf_redirect(ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
