package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain runs the program instead of the tests where a test asks for that.
func TestMain(m *testing.M) {
	if os.Getenv("ABATE_EXAMPLE") == "grpc" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheStoryIsToldToItsEnd(t *testing.T) {
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), "ABATE_EXAMPLE=grpc")
	out, err := program.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"server: Charge of card 1234, attempts before [2], order [order-1]",
		"client: attempt 2 ended after ", ": Unavailable",
		`caller: "charge 1 of card 1234", <nil>`,
		"here is a second copy: attempt 2", `caller: "100.00", <nil>`,
		"circuit breaker open, was closed", "orders: circuit open (Unavailable)",
		`grpc_client_retry_attempts_total{method="/shop.Payment/Charge",status="OK"}`,
		`circuit_breaker_state{service="payments"} 2`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	if n := strings.Count(string(out), `"charge 1 of card 1234"`); n != 2 || strings.Contains(string(out), "charge 2") {
		t.Errorf("the card was not charged once:\n%s", out)
	}
}

func TestTheClientIsShort(t *testing.T) {
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n >= 40 {
		t.Errorf("main.go has %d lines, the README promises fewer than 40", n)
	}
}
