/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* From a frame to its test tag, or to the reason why it has none. */
#ifndef LINERATE_PARSE_H
#define LINERATE_PARSE_H

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define ETH_P_8021Q 0x8100
#define ETH_P_8021AD 0x88a8
#define ETH_P_QINQ1 0x9100

#define PROTO_HOPOPTS 0
#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_ROUTING 43
#define PROTO_FRAGMENT 44
#define PROTO_AH 51
#define PROTO_DSTOPTS 60
#define PROTO_MH 135

#define VLANS_MAX 2
#define EXT_HEADERS_MAX 6
#define UDP_LEN_MAX 0x3fff /* keeps every packet offset under the verifier's 64 KiB */

#define TAG_LONG_MAGIC 0x4C52
#define TAG_SHORT_MAGIC 0x4C53
#define TAG_LONG_BYTES 18
#define TAG_SHORT_BYTES 10
#define TAG_SHORT_IDENTITY (1ULL << 63)

/* 0 takes every run. The short tag carries the low 8 bits only. */
const volatile __u16 run_id = 0;

struct vlan_header {
	__be16 tci;
	__be16 proto;
};

/* What parse learned on its way; all of it is valid whatever it returns. */
struct facts {
	__u64 identity; /* of the tag: worker, stream and sequence; 0 without one */
	__u32 l3;       /* 4, 6, or 0 */
	__u32 l4;       /* IP protocol; meaningful when l3 is set */
	__u32 udp;      /* 1 when dport is valid */
	__u32 dport;
	__u32 nvlan;
	__u32 vlan[VLANS_MAX];
	__u32 arp;
};

static __always_inline int is_vlan(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD) ||
	       proto == bpf_htons(ETH_P_QINQ1);
}

/* Returns the EtherType's offset past all VLAN tags, or a negative reason. */
static __always_inline int parse_ether(void *data, void *end, __u32 *off, __be16 *proto,
				       struct facts *f)
{
	if (data + 14 > end)
		return REASON_TRUNCATED;
	*proto = *(__be16 *)(data + 12);
	*off = 14;
#pragma unroll
	for (int i = 0; i < VLANS_MAX; i++) {
		struct vlan_header *v = data + *off;

		if (!is_vlan(*proto))
			return 0;
		if ((void *)(v + 1) > end)
			return REASON_TRUNCATED;
		f->vlan[i] = bpf_ntohs(v->tci) & 0xfff;
		f->nvlan = i + 1;
		*proto = v->proto;
		*off += sizeof(*v);
	}
	return is_vlan(*proto) ? REASON_VLAN_DEPTH : 0;
}

/* Moves *off past an IPv4 header with its options. */
static __always_inline int parse_ipv4(void *data, void *end, __u32 *off, struct facts *f)
{
	__u8 *ip = data + *off;
	__u32 header;

	if ((void *)(ip + 20) > end)
		return REASON_TRUNCATED;
	header = (ip[0] & 0x0f) * 4;
	if (ip[0] >> 4 != 4 || header < 20)
		return REASON_BAD_IP;
	f->l3 = 4;
	f->l4 = ip[9];
	/* More fragments to come, or an offset. */
	if (*(__be16 *)(ip + 6) & bpf_htons(0x3fff))
		return REASON_FRAGMENT;
	*off += header;
	return f->l4 == PROTO_UDP ? 0 : REASON_NOT_UDP;
}

/* Moves *off past an IPv6 header and a bounded chain of extension headers. */
static __always_inline int parse_ipv6(void *data, void *end, __u32 *off, struct facts *f)
{
	__u8 *ip = data + *off;
	__u32 next;

	if ((void *)(ip + 40) > end)
		return REASON_TRUNCATED;
	if (ip[0] >> 4 != 6)
		return REASON_BAD_IP;
	f->l3 = 6;
	next = ip[6];
	*off += 40;
#pragma unroll
	for (int i = 0; i <= EXT_HEADERS_MAX; i++) {
		__u8 *ext = data + *off;

		f->l4 = next;
		if (next == PROTO_UDP)
			return 0;
		if (next == PROTO_FRAGMENT)
			return REASON_FRAGMENT;
		if (next != PROTO_HOPOPTS && next != PROTO_ROUTING && next != PROTO_DSTOPTS &&
		    next != PROTO_AH && next != PROTO_MH)
			return REASON_NOT_UDP;
		if ((void *)(ext + 2) > end)
			return REASON_TRUNCATED;
		/* AH counts in 4 bytes less 2, the others in 8 less 1. */
		*off += next == PROTO_AH ? (ext[1] + 2) * 4 : (ext[1] + 1) * 8;
		next = ext[0];
	}
	return REASON_EXT_CHAIN;
}

/*
 * Makes the compiler add an offset to the packet as it stands. It may else move
 * a "- 18" from the offset to the pointer, and the verifier takes no bounds check
 * at a pointer's negative constant (find_good_pkt_pointers).
 */
#define KEEP_WHOLE(off) asm volatile("" : "+r"(off))

/* Reads a tag's first 4 and following 8 bytes: directly, or past the first buffer by helper. */
static __always_inline int load_tag(struct xdp_md *ctx, void *data, void *end, __u32 off,
				    __u32 *head, __u64 *body)
{
	void *tag;

	KEEP_WHOLE(off);
	tag = data + off;
	if (tag + TAG_LONG_BYTES <= end) {
		*head = *(__u32 *)tag;
		*body = *(__u64 *)(tag + 4);
		return 0;
	}
	if (bpf_xdp_load_bytes(ctx, off + TAG_LONG_BYTES - 1, head, 1))
		return REASON_TRUNCATED;
	if (bpf_xdp_load_bytes(ctx, off, head, 4) || bpf_xdp_load_bytes(ctx, off + 4, body, 8))
		return REASON_TRUNCATED;
	return 0;
}

/* The same for the 8 bytes of a short tag that come before its check. */
static __always_inline int load_short_tag(struct xdp_md *ctx, void *data, void *end, __u32 off,
					  __u64 *tag)
{
	void *at;

	KEEP_WHOLE(off);
	at = data + off;
	if (at + TAG_SHORT_BYTES <= end) {
		*tag = *(__u64 *)at;
		return 0;
	}
	if (bpf_xdp_load_bytes(ctx, off + TAG_SHORT_BYTES - 1, tag, 1) ||
	    bpf_xdp_load_bytes(ctx, off, tag, 8))
		return REASON_TRUNCATED;
	return 0;
}

/* Judges the tag at the end of the UDP payload; end_off is the payload's end. */
static __always_inline int parse_tag(struct xdp_md *ctx, void *data, void *end, __u32 end_off,
				     __u32 payload, struct facts *f)
{
	__u64 body = 0;
	__u32 head = 0;
	int err;

	if (payload >= TAG_LONG_BYTES) {
		err = load_tag(ctx, data, end, end_off - TAG_LONG_BYTES, &head, &body);
		if (err)
			return err;
		head = bpf_ntohl(head);
		if (head >> 16 == TAG_LONG_MAGIC) {
			/* worker and stream (16 bits), sequence (40), then time. */
			f->identity = bpf_be64_to_cpu(body) >> 8;
			return run_id && run_id != (head & 0xffff) ? REASON_OTHER_RUN : 0;
		}
	}
	err = load_short_tag(ctx, data, end, end_off - TAG_SHORT_BYTES, &body);
	if (err)
		return err;
	body = bpf_be64_to_cpu(body);
	if (body >> 48 != TAG_SHORT_MAGIC)
		return REASON_NO_TAG;
	f->identity = TAG_SHORT_IDENTITY | (body & 0xffffffffffULL);
	return run_id && (run_id & 0xff) != (body >> 40 & 0xff) ? REASON_OTHER_RUN : 0;
}

/*
 * Returns 0 for a frame with our tag, else the reason why it is not. The UDP
 * length alone says where the tag is: a frame whose other lengths are wrong is
 * ours all the same, and the verifier's to call corrupt.
 */
static __always_inline int parse(struct xdp_md *ctx, struct facts *f)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__be16 proto;
	__be16 *udp;
	__u32 off, len;
	int err;

	err = parse_ether(data, end, &off, &proto, f);
	if (err)
		return err;
	if (proto == bpf_htons(ETH_P_IP)) {
		err = parse_ipv4(data, end, &off, f);
	} else if (proto == bpf_htons(ETH_P_IPV6)) {
		err = parse_ipv6(data, end, &off, f);
	} else {
		f->arp = proto == bpf_htons(0x0806);
		err = REASON_NOT_IP;
	}
	if (err)
		return err;
	udp = data + off;
	if ((void *)(udp + 4) > end)
		return REASON_TRUNCATED;
	f->dport = bpf_ntohs(udp[1]);
	f->udp = 1;
	len = bpf_ntohs(udp[2]);
	if (len < 8)
		return REASON_BAD_UDP_LENGTH;
	if (len > UDP_LEN_MAX)
		return REASON_TOO_LONG;
	if (len < 8 + TAG_SHORT_BYTES)
		return REASON_SHORT_PAYLOAD;
	return parse_tag(ctx, data, end, off + len, len - 8, f);
}

#endif
