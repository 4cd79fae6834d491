package main

import (
	"net/url"
	"testing"

	"github.com/abate-go/abate/internal/needs/example"
	"github.com/abate-go/abate/internal/needs/postgres"
)

func TestMain(m *testing.M) { example.Main(m, main) }

func TestTheServiceWaitsForItsServerAndSurvivesARestart(t *testing.T) {
	server := postgres.Shared(t)
	server.Stop()
	example.SurvivesARestart(t, server, "DATABASE_URL="+server.DSN())
}

func TestAWrongPasswordEndsTheStartAtOnce(t *testing.T) {
	server := postgres.Shared(t)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("nobody", "wrong")
	example.Fails(t, "DATABASE_URL="+address.String(), "permanent failure after 1 attempt")
}

func TestTheProgramIsShort(t *testing.T) { example.IsShort(t) }
