package check

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// setting is one field of a type of configuration, however deep, and what its tags say of it.
type setting struct {
	index     []int
	path      string  // "circuitBreaker.rampUp"
	limits    string  // the tag `range`
	low, high float64 // of it
	words     []string
}

// settings are those of a type that have tags to check: reading tags is dear, and a simulation makes a guard for each
// of a thousand callers.
var settings sync.Map // reflect.Type → []setting

// Walk checks the fields of a struct by their tags `range` and `enum`. prefix stands before their names. Several
// goroutines may call it at once, each with Errors of its own.
func (v *Errors) Walk(prefix string, s reflect.Value) {
	known, ok := settings.Load(s.Type())
	if !ok {
		known, _ = settings.LoadOrStore(s.Type(), settingsOf(s.Type(), "", nil))
	}
	for i := range known.([]setting) {
		f := &known.([]setting)[i]
		v.field(prefix, f, s.FieldByIndex(f.index))
	}
}

// settingsOf reads the tags of a type whose fields are at index of another.
func settingsOf(t reflect.Type, prefix string, index []int) (all []setting) {
	for i := range t.NumField() {
		f, at := t.Field(i), append(slices.Clone(index), i)
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case f.Anonymous:
			all = append(all, settingsOf(f.Type, prefix, at)...)
		case key == "" || key == "-":
		case f.Type.Kind() == reflect.Struct:
			all = append(all, settingsOf(f.Type, prefix+key+".", at)...)
		default:
			s := setting{index: at, path: prefix + key, limits: f.Tag.Get("range")}
			if s.limits != "" {
				s.low, s.high = ParseRange(s.limits)
			}
			if words := f.Tag.Get("enum"); words != "" {
				s.words = strings.Split(words, "|")
			}
			if s.limits != "" || s.words != nil {
				all = append(all, s)
			}
		}
	}
	return all
}

func (v *Errors) field(prefix string, f *setting, value reflect.Value) {
	if value.IsZero() {
		return
	}
	if value.Kind() == reflect.Slice { // the tags are those of its members, of which a zero has no other meaning
		for i := range value.Len() {
			v.scalar(prefix, fmt.Sprintf("[%d]", i), f, value.Index(i))
		}
		return
	}
	v.scalar(prefix, "", f, value)
}

func (v *Errors) scalar(prefix, suffix string, f *setting, value reflect.Value) {
	if f.limits != "" && !inRange(value, f.low, f.high) {
		v.Add(prefix+f.path+suffix, show(value)+" is out of range", "allowed: "+DescribeRange(f.limits))
	}
	if f.words != nil && !slices.Contains(f.words, value.String()) {
		v.Add(prefix+f.path+suffix, strconv.Quote(value.String())+" is not known", "allowed: "+strings.Join(f.words, ", "))
	}
}

func inRange(value reflect.Value, low, high float64) bool {
	var f float64
	switch value.Kind() {
	case reflect.Float64:
		f = value.Float()
	default:
		f = float64(value.Int())
	}
	return f >= low && f <= high // false for NaN
}

func show(value reflect.Value) string { return fmt.Sprint(value.Interface()) }
