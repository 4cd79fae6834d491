package cli

import "context"

// Interruptible does something that cannot be stopped, and reports whether it was done before ctx was. Otherwise it may
// go on for a while: its result is not to be used, and the program is about to end.
func Interruptible(ctx context.Context, do func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
