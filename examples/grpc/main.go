// A payment service fails, is slow, and goes down. Its caller has a retry budget, hedges, a circuit breaker and more.
package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/adapter/abateprom"
	"github.com/abate-go/abate/policy/hedge"
)

func main() {
	metrics := must(abateprom.New(prometheus.DefaultRegisterer))
	policy := abate.DefaultPolicy() // 3 retries, full jitter, 10 % retry budget
	policy.Timeout, policy.CircuitBreaker.FailureRateThreshold = 2*time.Second, 0.5
	policy.RetryMethods = []string{"/shop.Payment/Balance"}    // the others are repeated if they have an idempotency key
	policy.Hedge = hedge.Config{Delay: 200 * time.Millisecond} // a second copy of what takes longer
	policy.Observer = abate.ObserverFunc(logged)
	metrics.Adjust("payments", &policy)
	guard := must(abate.New("payments", policy))
	metrics.Add(guard)
	client := &abategrpc.Client{Guard: guard, Observer: metrics.GRPC()}
	options := append(client.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn := must(grpc.NewClient(startServer(), options...))
	defer conn.Close()
	story(conn, func(card, order string) (string, error) {
		reply := new(wrapperspb.StringValue)
		err := conn.Invoke(abategrpc.WithIdempotencyKey(context.Background(), order), "/shop.Payment/Charge",
			wrapperspb.String(card), reply)
		return reply.Value, err
	})
}
