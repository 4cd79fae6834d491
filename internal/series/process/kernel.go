package process

import "github.com/abate-go/abate/internal/series"

// Process is a collector of what the kernel knows: processor time, memory, descriptors, bytes over the network. It
// sends nothing where there is no /proc as Linux has it, and leaves out what cannot be read there.
type Process struct{}

var (
	cpuDesc = series.NewDesc("process_cpu_seconds_total",
		"Processor time that the process has used, in user and in system mode.")
	openDesc     = series.NewDesc("process_open_fds", "File descriptors that are open.")
	mostDesc     = series.NewDesc("process_max_fds", "File descriptors that may be open at once.")
	virtualDesc  = series.NewDesc("process_virtual_memory_bytes", "Size of the address space in use.")
	addressDesc  = series.NewDesc("process_virtual_memory_max_bytes", "Size that the address space may have.")
	residentDesc = series.NewDesc("process_resident_memory_bytes", "Memory that the process has in RAM.")
	startDesc    = series.NewDesc("process_start_time_seconds", "When the process started, as a Unix time.")
	receivedDesc = series.NewDesc("process_network_receive_bytes_total",
		"Bytes that have come over the network: of all processes that share its network, as those of a pod do.")
	sentDesc = series.NewDesc("process_network_transmit_bytes_total",
		"Bytes sent over the network: of all processes that share its network, as those of a pod do.")
)

// Describe sends the descriptions.
func (Process) Describe(send func(*series.Desc)) {
	for _, d := range []*series.Desc{cpuDesc, openDesc, mostDesc, virtualDesc, addressDesc, residentDesc, startDesc,
		receivedDesc, sentDesc} {
		send(d)
	}
}
