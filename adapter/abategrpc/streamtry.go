package abategrpc

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

type streamTry struct {
	stream  grpc.ClientStream // nil if it could not be opened
	err     error             // why not
	context carrying
	told    bool // what is left of the call tree
	left    int
	number  int
	began   time.Duration
	trailer metadata.MD // written by grpc-go if there was a stream
	closed  atomic.Bool // grpc-go has ended it
	ending  error       // with this, if closed
	late    atomic.Bool // its time was up before the first message
	timer   *time.Timer
	// patience is how long the server may take for its part of a stream of requests; 0: without limit.
	patience time.Duration
	paused   atomic.Bool // it was the caller who was waited for when grpc-go ended it
	cancel   context.CancelFunc
}

// expire ends a try whose server has had its time.
func (t *streamTry) expire() {
	t.late.Store(true)
	t.cancel()
}

// end lets go what the try holds. It may be called more than once.
func (t *streamTry) end() {
	t.stopTimer()
	if t.cancel != nil {
		t.cancel()
	}
}

func (t *streamTry) stopTimer() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// translate names the end of a try for what it is: grpc-go knows only that its context was cancelled.
func (t *streamTry) translate(err error) error {
	if err != nil && err != io.EOF && t.late.Load() {
		return status.Error(codes.DeadlineExceeded, "abategrpc: no message came within the policy's time limit")
	}
	return err
}
