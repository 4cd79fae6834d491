package abatekafka

import (
	"fmt"
	"runtime/debug"
)

// handlerPanic is the error that a handler's panic becomes.
type handlerPanic struct {
	value any
	stack []byte
}

func caught(value any) *handlerPanic { return &handlerPanic{value, debug.Stack()} }

func (p *handlerPanic) Error() string { return fmt.Sprintf("the handler panicked: %v", p.value) }

// Class is what the error is called in headers, metrics and the policy's lists.
func (p *handlerPanic) Class() string { return "panic" }

// Trace is the stack of the panic.
func (p *handlerPanic) Trace() string { return string(p.stack) }

// Unwrap gives the panic's value, if it was an error.
func (p *handlerPanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}
