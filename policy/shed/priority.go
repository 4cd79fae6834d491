package shed

import "fmt"

// Priority is how much a request matters. The names are those of chapter 21 of the Site Reliability Engineering book.
// The zero Priority is the usual one, Critical.
type Priority int8

const (
	// Sheddable work may fail often, and whole batches of it.
	Sheddable Priority = iota - 2
	// SheddablePlus work is expected to fail now and then: batch jobs that come again.
	SheddablePlus
	// Critical is what users see. It is the default.
	Critical
	// CriticalPlus is what hurts users at once when it fails.
	CriticalPlus
)

// Priorities are all of them, from the one refused first to the one refused last.
var Priorities = [...]Priority{Sheddable, SheddablePlus, Critical, CriticalPlus}

var priorityNames = [...]string{"SHEDDABLE", "SHEDDABLE_PLUS", "CRITICAL", "CRITICAL_PLUS"}

// String returns the name used in headers, files and metrics, such as "CRITICAL_PLUS".
func (p Priority) String() string {
	return priorityNames[min(max(p, Sheddable), CriticalPlus)-Sheddable]
}

// MarshalText returns the name.
func (p Priority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a name, in upper or lower case.
func (p *Priority) UnmarshalText(text []byte) error {
	got, ok := ParsePriority(text)
	if !ok {
		return fmt.Errorf("%q is not a priority; allowed: CRITICAL_PLUS, CRITICAL, SHEDDABLE_PLUS, SHEDDABLE", text)
	}
	*p = got
	return nil
}

// ParsePriority reads a name, in upper or lower case, with "-" for "_" if need be. It allocates nothing.
func ParsePriority(text []byte) (Priority, bool) {
	for i, name := range priorityNames {
		if len(name) != len(text) {
			continue
		}
		same := true
		for k := range len(name) {
			c := text[k]
			switch {
			case c >= 'a' && c <= 'z':
				c -= 'a' - 'A'
			case c == '-':
				c = '_'
			}
			same = same && c == name[k]
		}
		if same {
			return Sheddable + Priority(i), true
		}
	}
	return Critical, false
}
