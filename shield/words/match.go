package words

// A Finding is a rule that a text met, and where.
type Finding struct {
	// Rule is its name, Why says it to people.
	Rule, Why string
	Act       Action
	// At and End are bytes of the text.
	At, End int
}

// vicinity is how far before the anchor a word takes a rule's force, and mentions how far one makes it a mention. Nothing that is
// farther away than farthest does either, whatever stands between.
const (
	vicinity = 3
	mentions = 14
	farthest = 64
)

// A matcher looks for rules among words.
type matcher struct {
	of [Results + 1]struct {
		rules []rule
		// anchors has of each rule what it needs first: most rules are ruled out by that, and are not looked at.
		anchors []concepts
	}
}

func newMatcher(all []rule) *matcher {
	m := &matcher{}
	for where := range m.of {
		l := &m.of[where]
		for _, r := range all {
			if r.in == Anywhere || r.in == Whence(where) {
				l.rules, l.anchors = append(l.rules, r), append(l.anchors, r.need[0])
			}
		}
	}
	return m
}

// match gives what the words meet, the first place for each rule. Where an anchor is innocent, what was met is noted.
func (m *matcher) match(words []word, where Whence, innocent *innocence) (found []Finding) {
	all := concepts(0)
	for i := range words {
		all |= words[i].has
	}
	var about []int // which words are about something, once a rule asks
	l := &m.of[where]
	for i, anchor := range l.anchors {
		if all&anchor == 0 || !has(all, l.rules[i].need) {
			continue
		}
		if about == nil {
			about = make([]int, 0, 32)
			for i := range words {
				if words[i].has != 0 {
					about = append(about, i)
				}
			}
		}
		if f, ok := l.rules[i].find(words, about, innocent); ok {
			found = append(found, f)
		}
	}
	return found
}

// has says whether each of the needs is there at all.
func has(all concepts, need []concepts) bool {
	for _, n := range need {
		if all&n == 0 {
			return false
		}
	}
	return true
}

// find gives the place with the greatest action.
func (r *rule) find(words []word, about []int, innocent *innocence) (best Finding, ok bool) {
	for n, i := range about {
		if words[i].has&r.need[0] == 0 {
			continue
		}
		last, met := r.rest(words, about, n)
		if !met || r.unless != 0 && r.near(words, i) || r.spoken && words[i].quoted {
			continue
		}
		f := Finding{r.name, r.why, r.act, words[i].at, words[last].end}
		if mentioned(words, i) || !r.firm && r.need[0]&foreignWords == 0 && innocent.of(i) {
			f.Act = Note
		}
		if !ok || f.Act > best.Act {
			best, ok = f, true
		}
		if f.Act == r.act {
			return best, true
		}
	}
	return best, ok
}

// rest looks for the words that the anchor needs beside it, and gives the last of them.
func (r *rule) rest(words []word, about []int, n int) (last int, ok bool) {
	anchor := about[n]
	last = anchor
	for _, need := range r.need[1:] {
		found := -1
		from := n + 1
		if !r.ordered {
			for from = n; from > 0 && anchor-about[from-1] <= r.reach; from-- {
			}
		}
		for _, j := range about[from:] {
			if j-anchor > r.reach {
				break
			}
			if words[j].has&need == 0 || !r.across && words[j].sentence != words[anchor].sentence || r.ordered && j < last || j == anchor {
				continue
			}
			found = j
			break
		}
		if found < 0 {
			return 0, false
		}
		last = max(found, last)
	}
	return last, true
}

// near says whether a word of those that take the rule's force stands before the anchor, or before what the anchor is
// joined to with "or".
func (r *rule) near(words []word, anchor int) bool {
	for j, left := anchor-1, vicinity; j >= 0 && left > 0 && anchor-j <= farthest && words[j].sentence == words[anchor].sentence; j, left = j-1, left-1 {
		if words[j].has&r.unless != 0 {
			return true
		}
		if words[j].folded == "or" || words[j].folded == "nor" {
			left = 2 * vicinity
		}
	}
	return false
}

// mentioned says whether the anchor's sentence talks about an attack, and makes none: a word that says so comes before
// it and nothing that tells the reader to act between them, or it is quoted in a sentence with such a word.
func mentioned(words []word, anchor int) bool {
	number := words[anchor].sentence
	for j := anchor - 1; j >= 0 && anchor-j <= mentions && words[j].sentence == number; j-- {
		if words[j].has&mention != 0 {
			return true
		}
		if words[j].has&must != 0 && anchor-j <= vicinity && !words[anchor].quoted {
			return false // the reader is told to
		}
	}
	if !words[anchor].quoted {
		return false
	}
	for j := anchor + 1; j < len(words) && j-anchor <= farthest && words[j].sentence == number; j++ {
		if words[j].has&mention != 0 {
			return true
		}
	}
	return false
}
