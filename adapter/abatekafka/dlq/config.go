package dlq

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Config says which dead letters.
type Config struct {
	// Brokers are the addresses to begin with, host:port.
	Brokers []string
	// Options are more options of the clients: TLS, SASL, a dialer.
	Options []kgo.Opt
	// Topic is the dead-letter topic.
	Topic string
	// Audit is the topic of the audit records. Empty: Topic with "-audit". It is created when the first action needs
	// it, with one partition and no end of retention.
	Audit string
	// By names who acts, for the audit records. Empty: the user of this process and the host, "ann@bastion".
	By string
	// Group is the consumer group that replays belong to: those of others are not shown unless asked for. Empty: all.
	Group string
	// AllowEdit lets Edit send a changed copy of a letter. Off, so that nobody changes what a customer sent without
	// having decided to.
	AllowEdit bool
}

// withDefaults fills in what is empty.
func (c Config) withDefaults() Config {
	c.Audit = cmp.Or(c.Audit, c.Topic+"-audit")
	if c.By == "" {
		c.By = whoami()
	}
	return c
}

// check finds everything that is wrong.
func (c *Config) check() error {
	var wrong []error
	if len(c.Brokers) == 0 {
		wrong = append(wrong, errors.New("dlq: Brokers is empty: give at least one address, for example localhost:9092"))
	}
	if c.Topic == "" {
		wrong = append(wrong, errors.New("dlq: Topic is empty: give the dead-letter topic, for example payments-dlq"))
	}
	if c.Audit == c.Topic && c.Topic != "" {
		wrong = append(wrong, fmt.Errorf("dlq: Audit is the dead-letter topic %s itself: give another, or leave it empty "+
			"for %[1]s-audit", c.Topic))
	}
	return errors.Join(wrong...)
}

// whoami is the user and the host of this process, as far as they are known.
func whoami() string {
	name, host := os.Getenv("USER"), "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host, _, _ = strings.Cut(h, ".")
	}
	name = cmp.Or(name, "unknown")
	return name + "@" + host
}
