package letter

import (
	"fmt"
	"strconv"
	"strings"
)

// Place is where a record stands.
type Place struct {
	Topic     string
	Partition int32
	Offset    int64
}

// nowhere is a Place that is not known.
var nowhere = Place{Partition: -1, Offset: -1}

// String reads payments/3/1042.
func (p Place) String() string {
	b := make([]byte, 0, len(p.Topic)+16)
	b = append(append(b, p.Topic...), '/')
	b = append(strconv.AppendInt(b, int64(p.Partition), 10), '/')
	return string(strconv.AppendInt(b, p.Offset, 10))
}

// Known reports whether it is the place of a record.
func (p Place) Known() bool { return p.Topic != "" && p.Partition >= 0 && p.Offset >= 0 }

// ParsePlace reads what String wrote.
func ParsePlace(s string) (Place, error) {
	rest, offset, ok := cutLast(s, '/')
	topic, partition, ok2 := cutLast(rest, '/')
	o, err := strconv.ParseInt(offset, 10, 64)
	p, err2 := strconv.ParseInt(partition, 10, 32)
	if at := (Place{Topic: topic, Partition: int32(p), Offset: o}); ok && ok2 && err == nil && err2 == nil &&
		at.Known() && validTopic(topic) {
		return at, nil
	}
	return nowhere, fmt.Errorf("place %s: write topic/partition/offset, as in payments/3/1042", quote(s))
}

func cutLast(s string, sep byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// validTopic reports whether Kafka takes it as a topic's name.
func validTopic(s string) bool {
	if s == "" || s == "." || s == ".." || len(s) > 249 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
