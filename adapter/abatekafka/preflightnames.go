package abatekafka

import "fmt"

// longestName is what Kafka allows a topic's name.
const longestName = 249

// checkNames looks for names that no topic may have, and for two things with one name.
func (p *preflight) checkNames() {
	owners := map[string]string{}
	for _, chain := range p.chains {
		p.claim(owners, chain.Topic, "the topic that is consumed")
	}
	for _, chain := range p.chains {
		for _, hop := range chain.Hops {
			p.claim(owners, hop.Topic, fmt.Sprintf("the retry topic of %s after %v", chain.Topic, hop.Delay))
		}
		if chain.DeadLetters != "" {
			p.claim(owners, chain.DeadLetters, "the dead-letter topic of "+chain.Topic)
		}
	}
}

func (p *preflight) claim(owners map[string]string, name, owner string) {
	if other, taken := owners[name]; taken {
		p.problem("topic %s is %s and also %s: change kafka.retrySuffix, kafka.dltSuffix or kafka.naming, "+
			"or consume them under policies of their own", name, other, owner)
		return
	}
	owners[name] = owner
	switch {
	case len(name) > longestName:
		p.problem("topic %s, %s, has a name of %d characters, and Kafka takes %d: shorten kafka.retrySuffix or "+
			"kafka.dltSuffix, or the group if kafka.groupInNames is set", name, owner, len(name), longestName)
	case !legal(name):
		p.problem("topic %q, %s: Kafka takes only letters, digits, '.', '_' and '-' in a name: change Topics, "+
			"kafka.retrySuffix, kafka.dltSuffix, or the group if kafka.groupInNames is set", name, owner)
	}
}

func legal(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return name != "" && name != "." && name != ".."
}
