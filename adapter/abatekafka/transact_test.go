package abatekafka_test

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka"
)

// What the client has not noted it would leave out when it ends the transaction.
func TestATransactionDoesNotEndBeforeItsClientHasNotedWhatItWrote(t *testing.T) {
	client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if abatekafka.Known(ctx, client, []*kgo.Record{{Topic: "orders.retry"}}) {
		t.Error("it goes on with a partition that its client does not know")
	}
	if !abatekafka.Known(ctx, client, nil) {
		t.Error("it waits for nothing")
	}
}
