// What becomes of messages that fail: a healthy one, one whose bank is away for a while, one that never succeeds, and
// one that nobody can read.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/adapter/abatekafka/embedded"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/redelivery"
)

func main() {
	brokers := flag.String("brokers", "", "a real Kafka, host:port[,host:port]; without it the program brings a fake one")
	stay := flag.Bool("stay", false, "keep the broker at the end, to look at the dead letters")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	if *brokers == "" {
		fake, err := embedded.Start(embedded.Config{})
		check(err)
		defer fake.Close()
		fmt.Println(embedded.Notice)
		*brokers = strings.Join(fake.Addresses(), ",")
	}
	addresses := strings.Split(*brokers, ",")

	policy := abate.DefaultPolicy()
	// By default a message is tried again in the process first.
	policy.MaxRetries = 0
	guard, err := abate.New("bank", policy)
	check(err)

	// In earnest 30s, 5m, 30m.
	retries := redelivery.Config{Tiers: []time.Duration{500 * time.Millisecond, 2 * time.Second, 4 * time.Second}}

	story := begin(ctx, addresses)
	consumer := &abatekafka.Consumer{
		Brokers:      addresses,
		Group:        "billing",
		Topics:       []string{story.topic},
		Guard:        guard,
		Redelivery:   retries.Always(),
		Handler:      story.prints(charge),
		Once:         abatekafka.Once(idempotency.NewMemory(64<<20, core.Now)), // in earnest a store in Redis or SQL
		OnDeadLetter: story.deadLetter,
		Observer:     story,
		Logger:       slog.New(slog.DiscardHandler),
	}
	running, finish := context.WithCancel(ctx)
	story.atTheEnd(finish)
	check(consumer.Run(running))

	story.lookAtTheDeadLetters(ctx, *brokers)
	if *stay {
		fmt.Println("\nCtrl-C ends the broker.")
		<-ctx.Done()
	}
}

// payment is what a message says.
type payment struct {
	Order string `json:"order"`
	Euros int    `json:"euros"`
}

// charge handles a message. What it returns decides: nil, and it is done; an error, and it comes again from a retry
// topic; a permanent error, and it is a dead letter at once.
func charge(ctx context.Context, m *abatekafka.Message) error {
	var p payment
	if err := json.Unmarshal(m.Value, &p); err != nil {
		return abate.Permanent(fmt.Errorf("not a payment: %w", err))
	}
	switch {
	case p.Order == "order-2" && m.Delivery < 3:
		return errAway // for a while
	case p.Order == "order-3":
		return errAway // for good
	}
	return nil
}

var errAway = bankError("the bank does not answer")

// bankError shows how errors get a class: dead letters are grouped by it, and a policy can name it.
type bankError string

func (e bankError) Error() string { return string(e) }

// Class is what the dead letter says.
func (e bankError) Class() string { return "bank-away" }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
