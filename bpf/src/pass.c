// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Everything to the stack. Some drivers send from AF_XDP only where a program is attached. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp.frags")
int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
