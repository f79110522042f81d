// Package pcap reads, replays and writes captures: pcap and pcapng files of
// Ethernet frames. It knows files and no interface.
package pcap
