package abateredis

import (
	_ "embed" // the scripts

	"github.com/redis/go-redis/v9"
)

// The scripts are atomic, read the clock of the server, and touch one key each, so that they run on a cluster.
var (
	//go:embed lua/take.lua
	takeText string
	//go:embed lua/alive.lua
	aliveText string
	//go:embed lua/budget.lua
	budgetText string
	//go:embed lua/begin.lua
	beginText string
	//go:embed lua/end.lua
	endText string

	takeScript   = redis.NewScript(takeText)
	aliveScript  = redis.NewScript(aliveText)
	budgetScript = redis.NewScript(budgetText)
	beginScript  = redis.NewScript(beginText)
	endScript    = redis.NewScript(endText)
)
