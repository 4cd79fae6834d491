package cli_test

import (
	"context"
	"testing"

	"github.com/abate-go/abate/cmd/internal/cli"
)

func TestWhatCannotBeStoppedIsLeftWhenTheProgramIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		<-begun
		cancel()
	}()
	if cli.Interruptible(ctx, func() {
		close(begun)
		<-end
		close(ended)
	}) {
		t.Error("it was done")
	}
	close(end)
	<-ended
	done := false
	if !cli.Interruptible(t.Context(), func() { done = true }) || !done {
		t.Error("it was not done")
	}
}
