package main

import (
	"testing"

	"github.com/abate-go/abate/internal/needs/example"
	"github.com/abate-go/abate/internal/needs/redis"
)

func TestMain(m *testing.M) { example.Main(m, main) }

func TestTheServiceWaitsForItsServerAndSurvivesARestart(t *testing.T) {
	server := redis.New(t)
	example.SurvivesARestart(t, server, "REDIS_URL=redis://"+server.Addr())
}

func TestAWrongPasswordEndsTheStartAtOnce(t *testing.T) {
	example.Fails(t, "REDIS_URL=redis://nobody:wrong@"+redis.Start(t).Addr(), "permanent failure")
}

func TestTheProgramIsShort(t *testing.T) { example.IsShort(t) }
