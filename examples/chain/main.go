// Command chain sends users' requests through three layers to a database that is down, and counts what arrives where:
// with and without Abate, over HTTP, over gRPC, and mixed. All of it are real servers, on loopback.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/retry"
)

const (
	tries    = 3  // of every layer
	requests = 20 // of users, for each line of the table
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// protocols are what the chain speaks: from the user to checkout, to payment, and to the database.
var protocols = []struct {
	name  string
	wires [3]wire
}{
	{"HTTP", [3]wire{overHTTP{}, overHTTP{}, overHTTP{}}},
	{"gRPC", [3]wire{overGRPC{}, overGRPC{}, overGRPC{}}},
	{"mixed", [3]wire{overHTTP{}, overGRPC{}, overGRPC{}}},
}

// settings are who runs Abate: the user's client, checkout, payment. Nil is a plain loop of three tries.
func settings() []setting {
	ownerRule := func(owner core.RetryOwner) *abate.Policy { // and nothing else: no budget, no circuit breaker
		p := &abate.Policy{Retry: quick(), RetryOwner: owner, RetryMethods: readOnly}
		p.RetryBudget.Disabled, p.CircuitBreaker.Disabled = true, true // the rule alone
		return p
	}
	whole := abate.DefaultPolicy()
	whole.Retry, whole.RetryMethods = quick(), readOnly
	nearest, edge := ownerRule(core.OwnerNearest), ownerRule(core.OwnerEdge)
	return []setting{
		{"nobody", [3]*abate.Policy{}},
		{"all, owner rule alone: nearest", [3]*abate.Policy{nearest, nearest, nearest}},
		{"all, owner rule alone: edge", [3]*abate.Policy{edge, edge, edge}},
		{"all, with the default policy", [3]*abate.Policy{&whole, &whole, &whole}},
		{"only checkout, default policy", [3]*abate.Policy{nil, &whole, nil}},
		{"only checkout, owner rule alone", [3]*abate.Policy{nil, nearest, nil}},
	}
}

type setting struct {
	name     string
	policies [3]*abate.Policy
}

// readOnly are the methods that may be repeated. In gRPC somebody has to say so.
var readOnly = []string{"GET", "/chain.Service/Ask"}

// quick is three tries that do not wait long.
func quick() retry.Config {
	return retry.Config{MaxRetries: tries - 1, InitialDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond}
}

const intro = `A user's request goes user → checkout → payment → database. The database is down.
The user's client, checkout and payment try %d times each.

Requests that arrive for each user's request, on average over %d of them:

`

const outro = `
nearest, edge    retryOwner: who retries. The allowance of the user's call, %d extra attempts, is all that the
                 whole chain gets.
default policy   the owner rule, and a retry budget in each layer. Its circuit breaker stays closed: the database
                 fails at once, which costs nobody anything.
only checkout    its neighbours do not run Abate and try %d times, so there is nobody to share an allowance with.
                 Its budget lets one retry pass for every ten calls, with ten to begin with.
`

// run prints the table.
func run(out io.Writer) error {
	fmt.Fprintf(out, intro, tries, requests)
	fmt.Fprintf(out, "%-6s  %-34s%10s%10s%10s   at the database at most\n", "", "who runs Abate", "checkout", "payment",
		"database")
	for _, p := range protocols {
		fmt.Fprintln(out)
		for _, s := range settings() {
			c, err := build(p.wires, s.policies)
			if err != nil {
				return err
			}
			for n := range requests {
				c.send(fmt.Sprint("user-", n))
			}
			mean, most := c.close()
			fmt.Fprintf(out, "%-6s  %-34s%10.1f%10.1f%10.1f%10d\n", p.name, s.name, mean[0], mean[1], mean[2], most)
		}
	}
	fmt.Fprintf(out, outro, tries-1, tries)
	return nil
}
