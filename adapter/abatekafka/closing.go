package abatekafka

import "time"

// close starts nothing more. The channel is closed when nothing is under way.
func (p *partition) close() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing = true
	quiet := make(chan struct{})
	p.quiet = quiet
	if len(p.workers) == 0 || p.gone { // gone: dropped before, as when a group is left after the drain
		p.settle()
	}
	p.waiting.Broadcast()
	return quiet
}

// cutOff is how long handlers have to notice that their context has ended.
const cutOff = 200 * time.Millisecond

// await waits for what is under way, and ends the handlers' context when the time is up.
func (p *partition) await(quiet <-chan struct{}, grace time.Duration) {
	if waitFor(quiet, grace) {
		return
	}
	p.cut()
	if grace > 0 && !waitFor(quiet, cutOff) {
		p.mu.Lock()
		flying, outgoing := p.flying, p.outgoing
		p.mu.Unlock()
		p.log.Warn("partition is given up with deliveries under way: they will be made again, here or elsewhere",
			"handlers", flying, "forwards", outgoing)
	}
}

// waitFor reports whether a channel was closed within a time.
func waitFor(quiet <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-quiet:
		return true
	case <-timer.C:
		return false
	}
}

// drop makes the partition nobody's. What comes late is ignored.
func (p *partition) drop() {
	p.cut()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing, p.gone = true, true
	p.alarm.stop()
	p.intake.end()
	p.waiting.Broadcast()
}
