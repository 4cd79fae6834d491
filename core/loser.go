package core

import (
	"io"
	"reflect"
)

// closeLoser closes what a hedged function has returned for nobody, unless it is what the winner has returned too, as
// it is if the function hands out something that is shared.
func (r *race[T]) closeLoser(v T) {
	c := closerOf(v)
	if c == nil {
		return
	}
	r.mu.Lock()
	shared := c == closerOf(r.v)
	r.mu.Unlock()
	if !shared {
		c.Close()
	}
}

// closerOf returns what has to be closed of v: v itself, or the Body of an *http.Response, which this package does not
// import. nil for nothing, and for what cannot be compared.
func closerOf(v any) io.Closer {
	value := reflect.ValueOf(v)
	if !value.IsValid() || !value.Type().Comparable() || value.Kind() == reflect.Pointer && value.IsNil() {
		return nil
	}
	if c, ok := v.(io.Closer); ok {
		return c
	}
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return nil
	}
	body := value.Elem().FieldByName("Body")
	if !body.IsValid() || !body.CanInterface() || !body.Comparable() {
		return nil
	}
	c, _ := body.Interface().(io.Closer)
	return c
}
