package abatesql

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Config describes where and for how long keys are kept. The zero Config is usable.
type Config struct {
	// Table is the name of the table, for example shop.idempotency with a schema: letters, digits and underscores, at
	// most 50 each, not starting with a digit. Capitals count. Empty means the default, abate_idempotency.
	Table string
	// Timeout is how long one statement may take, in addition to what the caller's context says. Once is not bound by
	// it. Range 1ms to 1h. Zero means the default, 5s.
	Timeout time.Duration
	// Remember is how long Once remembers a key at least: longer than anybody may try again. Range 1s to 87600h. Zero
	// means the default, 720h.
	Remember time.Duration
}

// name is one part of a table's name. It leaves room for the suffixes of the index and the sequence in the 63 bytes
// that PostgreSQL takes: it cuts off what is over them, and two long names could become one.
var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,49}$`)

// withDefaults returns c with defaults filled in, and an error for each field that is not usable.
func (c Config) withDefaults() (Config, error) {
	c.Table = cmp.Or(c.Table, "abate_idempotency")
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.Remember = cmp.Or(c.Remember, 720*time.Hour)
	var errs []error
	parts := strings.Split(c.Table, ".")
	for _, part := range parts {
		if len(parts) > 2 || !name.MatchString(part) {
			errs = append(
				errs, fmt.Errorf("abatesql: Table %.200q is not a name or schema.name of letters, digits and underscores, at "+
					"most 50 each", c.Table))
			break
		}
	}
	if c.Timeout < time.Millisecond || c.Timeout > time.Hour {
		errs = append(errs, fmt.Errorf("abatesql: Timeout %v is not from 1ms to 1h", c.Timeout))
	}
	if c.Remember < time.Second || c.Remember > 87600*time.Hour {
		errs = append(errs, fmt.Errorf("abatesql: Remember %v is not from 1s to 87600h", c.Remember))
	}
	return c, errors.Join(errs...)
}

// quoted is the table's name as SQL wants it, and unquoted its last part.
func (c Config) quoted() (quoted, last string) {
	parts := strings.Split(c.Table, ".")
	return `"` + strings.Join(parts, `"."`) + `"`, parts[len(parts)-1]
}
