// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Losses that no counter of device or socket shows: tracepoints, per interface and errno. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define TARGETS_MAX 64
#define COUNTS_MAX 4096

/* What we read of the kernel's own structures; the loader finds the real offsets. */
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
} __attribute__((preserve_access_index));

enum point {
	POINT_XDP_REDIRECT_ERR,
	POINT_XDP_EXCEPTION,
	POINT_XDP_DEVMAP_XMIT,
	POINT_XDP_BULK_TX,
	POINT_NET_DEV_XMIT,
	POINT_KFREE_SKB,
	POINT_COUNT,
};

/* An ifindex means something only together with its network namespace. */
struct target {
	__u32 ifindex;
	__u32 netns; /* inode number of the namespace */
};

struct trace_key {
	struct target target;
	enum point point;
	__s32 code; /* errno (positive), XDP action, or drop reason, by point */
};

struct trace_value {
	__u64 events;
	__u64 sent;
	__u64 dropped;
	__u64 bytes; /* net_dev_xmit only: without FCS */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TARGETS_MAX);
	__type(key, struct target);
	__type(value, __u8);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, COUNTS_MAX);
	__type(key, struct trace_key);
	__type(value, struct trace_value);
} counts SEC(".maps");

/* Events that found no room in counts: not known of which point, but known to be missing. */
__u64 uncounted = 0;

static __always_inline void count(const struct target *target, enum point point, __s32 code,
				  __u64 sent, __u64 dropped, __u64 bytes)
{
	static const struct trace_value zero;
	struct trace_key key = { .target = *target, .point = point, .code = code };
	struct trace_value *v = bpf_map_lookup_elem(&counts, &key);

	if (!v) {
		/* Another CPU may have been first: then this fails and the lookup finds its entry. */
		bpf_map_update_elem(&counts, &key, &zero, BPF_NOEXIST);
		v = bpf_map_lookup_elem(&counts, &key);
	}
	if (!v) {
		__sync_fetch_and_add(&uncounted, 1);
		return;
	}
	/* Tracepoints fire in process and in interrupt context of one CPU alike. */
	__sync_fetch_and_add(&v->events, 1);
	__sync_fetch_and_add(&v->sent, sent);
	__sync_fetch_and_add(&v->dropped, dropped);
	__sync_fetch_and_add(&v->bytes, bytes);
}

/* wanted says whether the device is one of ours, and which. */
static __always_inline int wanted(const struct net_device *dev, struct target *target)
{
	target->ifindex = dev->ifindex;
	target->netns = dev->nd_net.net->ns.inum;
	return bpf_map_lookup_elem(&targets, target) != NULL;
}

static __always_inline __s32 positive(int err)
{
	return err < 0 ? -err : err;
}

SEC("tp_btf/xdp_redirect_err")
int BPF_PROG(xdp_redirect_err, const struct net_device *dev, const void *prog, const void *tgt,
	     int err)
{
	struct target t;

	if (wanted(dev, &t))
		count(&t, POINT_XDP_REDIRECT_ERR, positive(err), 0, 1, 0);
	return 0;
}

SEC("tp_btf/xdp_exception")
int BPF_PROG(xdp_exception, const struct net_device *dev, const void *prog, __u32 act)
{
	struct target t;

	if (wanted(dev, &t))
		count(&t, POINT_XDP_EXCEPTION, act, 0, 1, 0);
	return 0;
}

SEC("tp_btf/xdp_devmap_xmit")
int BPF_PROG(xdp_devmap_xmit, const struct net_device *from, const struct net_device *to,
	     int sent, int drops, int err)
{
	struct target t;

	if (wanted(to, &t))
		count(&t, POINT_XDP_DEVMAP_XMIT, positive(err), sent, drops, 0);
	return 0;
}

SEC("tp_btf/xdp_bulk_tx")
int BPF_PROG(xdp_bulk_tx, const struct net_device *dev, int sent, int drops, int err)
{
	struct target t;

	if (wanted(dev, &t))
		count(&t, POINT_XDP_BULK_TX, positive(err), sent, drops, 0);
	return 0;
}

/* A frame of the stack at the driver's door. Any code but 0: it was not taken and comes again. */
SEC("tp_btf/net_dev_xmit")
int BPF_PROG(net_dev_xmit, const void *skb, int rc, const struct net_device *dev,
	     unsigned int len)
{
	struct target t;

	if (wanted(dev, &t))
		count(&t, POINT_NET_DEV_XMIT, rc, !rc, 0, rc ? 0 : len);
	return 0;
}

/* Fires for every frame the stack discards: loaded on request only. */
SEC("tp_btf/kfree_skb")
int BPF_PROG(kfree_skb, const struct sk_buff *skb, const void *location, __u32 reason)
{
	/* dev is NULL, or shares its place with something else, in some states of an skb. */
	struct net_device *dev = BPF_CORE_READ(skb, dev);
	struct target t = {
		.ifindex = BPF_CORE_READ(dev, ifindex),
		.netns = BPF_CORE_READ(dev, nd_net.net, ns.inum),
	};

	if (bpf_map_lookup_elem(&targets, &t))
		count(&t, POINT_KFREE_SKB, reason, 0, 1, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
