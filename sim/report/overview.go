package report

// So many variants are shown as cards, and so many as cards with all the room that they want: then all of them fit on
// the first screen. More stand in a table.
const (
	mostCards  = 6
	roomyCards = 3
)

// Dense reports whether cards are so many that each has to be small.
func (p *page) Dense() bool { return p.Overview == nil && len(p.Cards) > roomyCards }

// overview holds the cards of many variants as a table: a column per variant.
type overview struct {
	Cards      []card
	Rules      []overviewRule // that all variants have
	Own        bool           // some have rules of their own
	Facts      []overviewFact
	Spark      bool
	Advice     bool
	NotCovered bool
}

// overviewRule is one expectation.
type overviewRule struct {
	Text  string
	Cells []*ruling
}

// overviewFact is one number; nil where a variant does not have it.
type overviewFact struct {
	Name  string
	Cells []*fact
}

// MinWidth is the width in pixels below which the table scrolls.
func (o *overview) MinWidth() int { return 200 + 130*len(o.Cards) }

// own returns the expectations that not all variants have.
func (o *overview) own(c *card) []ruling {
	var own []ruling
	for i := range c.Rules {
		if !o.shared(c.Rules[i].Text) {
			own = append(own, c.Rules[i])
		}
	}
	return own
}

// shared reports whether all variants have an expectation.
func (o *overview) shared(text string) bool {
	for i := range o.Cards {
		if o.Cards[i].rule(text) == nil {
			return false
		}
	}
	return true
}

// rule returns the verdict on an expectation, nil when the variant does not have it.
func (c *card) rule(text string) *ruling {
	for i := range c.Rules {
		if c.Rules[i].Text == text {
			return &c.Rules[i]
		}
	}
	return nil
}

// newOverview turns cards into a table. Rows are in the order of the first card that has them.
func newOverview(cards []card) *overview {
	o := &overview{Cards: cards}
	for i := range cards[0].Rules {
		if text := cards[0].Rules[i].Text; o.shared(text) {
			row := overviewRule{Text: text}
			for j := range cards {
				row.Cells = append(row.Cells, cards[j].rule(text))
			}
			o.Rules = append(o.Rules, row)
		}
	}
	facts := map[string]int{}
	for i := range cards {
		c := &cards[i]
		c.Own = o.own(c)
		o.Own = o.Own || len(c.Own) > 0
		o.Spark = o.Spark || c.Spark != nil
		o.NotCovered = o.NotCovered || len(c.NotCovered) > 0
		o.Advice = o.Advice || c.Advice+c.Nothing != ""
		for j := range c.Facts {
			at, ok := facts[c.Facts[j].Name]
			if !ok {
				at = len(o.Facts)
				facts[c.Facts[j].Name] = at
				o.Facts = append(o.Facts, overviewFact{c.Facts[j].Name, make([]*fact, len(cards))})
			}
			o.Facts[at].Cells[i] = &c.Facts[j]
		}
	}
	return o
}
