package abate

import "github.com/abate-go/abate/internal/cpu"

// processCPU is the processor time that gates go by whose protection names no source.
var processCPU = cpu.Share
