package harm

// Kind is what happens to a system: one kind of trouble, or one kind of a healthy day.
type Kind uint8

// The kinds of trouble, then those of healthy days.
const (
	Refuse Kind = iota
	FastErrors
	SlowErrors
	Hang
	PartialHang
	Slowdown
	CapacityLoss
	BrownOut
	BadEndpoint
	Flapping
	Restart
	Surge

	Bursts
	ColdStart
	Deploys
	MixShift
	SlowerForGood
	LowTraffic
	Daily
	Steady

	Kinds // how many there are
)

var kindNames = [Kinds]string{
	"refuse", "fast errors", "slow errors", "hang", "partial hang", "slowdown", "capacity loss", "brown-out",
	"one bad endpoint", "flapping", "restart", "surge",
	"bursts", "cold start", "deploys", "mix shift", "slower for good", "low traffic", "daily shape", "steady",
}

// String returns the name in tables.
func (k Kind) String() string { return kindNames[k] }

// Healthy reports whether nothing goes wrong.
func (k Kind) Healthy() bool { return k >= Bursts }

// KindOf returns the kind of a system: every block of 20 has one of each.
func KindOf(number int) Kind { return Kind(number % int(Kinds)) }

// ForTest reports whether a system is for judging, and nobody may tune on it.
func ForTest(number int) bool { return number/int(Kinds)%2 == 1 }
