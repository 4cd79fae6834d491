package abategrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// askGRPC has grpc-go itself read the service config, as the default of a connection that is never made: what it
// refuses is refused, load balancing that this program does not know among it.
func (r *configReader) askGRPC(text []byte) {
	conn, err := grpc.NewClient("passthrough:///", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(string(text)))
	if err != nil {
		r.add("the document", "is refused by grpc-go: "+err.Error(),
			"write what grpc-go takes; an empty service config is {}")
		return
	}
	conn.Close()
}

// object reads an object with these keys, in any case, as grpc-go does. Those that are null are as if they were not
// there, and what stands there twice counts as it does to grpc-go: the last, and of objects all together. what names an
// object without a path.
func (r *configReader) object(what, path string, raw json.RawMessage, keys ...string) map[string]json.RawMessage {
	if path != "" {
		what = path
	}
	fields, err := fieldsOf(raw)
	if err != nil {
		problem := "is not a JSON object"
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			problem = fmt.Sprintf("is not JSON, at byte %d: %v", syntax.Offset, syntax)
		}
		r.add(what, problem, `write for example {"methodConfig": [{"name": [{}], "timeout": "2s"}]}`)
		return nil
	}
	all := make(map[string]json.RawMessage, len(fields))
	for _, f := range fields {
		at := strings.TrimPrefix(path+"."+f.key, ".")
		i := slices.IndexFunc(keys, func(known string) bool { return strings.EqualFold(known, f.key) })
		if i < 0 {
			r.note(at, "is not known, and gRPC does not look at it either; known here: "+strings.Join(keys, ", "))
			continue
		}
		key, value := keys[i], f.value
		if key != f.key {
			r.note(at, "is read as "+key+", as by grpc-go; gRPC in other languages does not look at it")
		}
		switch before := all[key]; {
		case string(value) == "null":
			delete(all, key)
		case isObject(before) && isObject(value):
			all[key] = together(before, value)
		default:
			all[key] = value
		}
	}
	return all
}

type jsonField struct {
	key   string
	value json.RawMessage
}

// fieldsOf are the fields of an object as they stand there. null has none.
func fieldsOf(raw json.RawMessage) (all []jsonField, err error) {
	var whole map[string]json.RawMessage
	if err = json.Unmarshal(raw, &whole); err != nil || whole == nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err = d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		f := jsonField{key: key.(string)}
		if err = d.Decode(&f.value); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// together is an object with the fields of both.
func together(a, b json.RawMessage) json.RawMessage {
	left, right := bytes.TrimSpace(a[1:len(a)-1]), bytes.TrimSpace(b[1:len(b)-1])
	if len(left) == 0 || len(right) == 0 {
		return slices.Concat(json.RawMessage("{"), left, right, json.RawMessage("}"))
	}
	return slices.Concat(json.RawMessage("{"), left, json.RawMessage(","), right, json.RawMessage("}"))
}

// list reads an array; one that is not there is empty.
func (r *configReader) list(path string, raw json.RawMessage) []json.RawMessage {
	var all []json.RawMessage
	if raw != nil && json.Unmarshal(raw, &all) != nil {
		r.add(path, "is not a list", "put it in brackets: [ ]")
	}
	return all
}

// number reads one that has to be above zero.
func (r *configReader) number(path string, raw json.RawMessage) float64 {
	var f float64
	if err := json.Unmarshal(raw, &f); raw == nil || err != nil || !(f > 0) {
		r.add(path, "is not a number above 0", "write it without quotes, for example 0.1 or 2")
		return 0
	}
	return f
}

// timeout reads one. In gRPC a call that has no time ends at once, which is what a nanosecond does.
func (r *configReader) timeout(path string, raw json.RawMessage) time.Duration {
	const day = 24 * time.Hour
	switch d, ok := secondsOf(raw); {
	case !ok:
		r.add(path, "is not a time", `write seconds with an "s", in quotes: "0.1s"`)
	case d <= 0:
		r.note(path, "leaves no time, so every call ends with DEADLINE_EXCEEDED, as in gRPC")
		return time.Nanosecond
	case d > day:
		r.note(path, "more than a day is a day")
		return day
	default:
		return d
	}
	return 0
}

// pause reads a duration above zero, and brings it between a millisecond and most.
func (r *configReader) pause(path string, raw json.RawMessage, most time.Duration) time.Duration {
	d, ok := secondsOf(raw)
	switch {
	case !ok || d <= 0:
		r.add(path, "is not a time above 0", `write seconds with an "s", in quotes: "0.1s"`)
		return 0
	case d < time.Millisecond:
		r.note(path, "less than a millisecond is a millisecond")
		return time.Millisecond
	case d > most:
		r.note(path, fmt.Sprintf("%v is as %v, which is the most", d, most))
		return most
	}
	return d
}

// secondsOf reads a duration as grpc-go does: seconds with an "s" behind them, before or behind whose point the digits
// may be missing, and which may have signs. What no time.Duration can say is the longest there is.
func secondsOf(raw json.RawMessage) (time.Duration, bool) {
	var s string
	if raw == nil || json.Unmarshal(raw, &s) != nil {
		return 0, false
	}
	number, ok := strings.CutSuffix(s, "s")
	number, negative := strings.CutPrefix(number, "-")
	whole, part, _ := strings.Cut(number, ".")
	const most, digits = 315_576_000_000, 9 // ten thousand years, as in protobuf; nanoseconds
	if !ok || whole == "" && part == "" || len(part) > digits {
		return 0, false
	}
	seconds, err := wholeNumber(whole)
	nanos, bad := wholeNumber(part)
	if err != nil || bad != nil || seconds > most {
		return 0, false
	}
	for range digits - len(part) {
		nanos *= 10
	}
	if negative {
		seconds, nanos = -seconds, -nanos
	}
	const longest = math.MaxInt64 / int64(time.Second)
	switch {
	case seconds >= longest:
		return math.MaxInt64, true
	case seconds <= -longest:
		return math.MinInt64, true
	}
	return time.Duration(seconds)*time.Second + time.Duration(nanos), true
}

// wholeNumber reads one with or without a sign; none is 0.
func wholeNumber(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	return strconv.ParseInt(s, 10, 64)
}
