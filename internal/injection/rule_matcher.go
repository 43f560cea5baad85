package injection

// A Finding is a rule that matched a text, with its position.
type Finding struct {
	// Rule is its name. Why describes the finding to people.
	Rule, Why string
	Act       FindingAction
	// At and End are bytes of the text.
	At, End int
}

// Distances in words before the anchor: in which a word exempts from a rule (unlessDistance), and in which a word about
// attacks makes the match a mention (mentionDistance). No word farther away than maxAnchorDistance does either.
const (
	unlessDistance    = 3
	mentionDistance   = 14
	maxAnchorDistance = 64
)

// A ruleMatcher matches words with rules.
type ruleMatcher struct {
	of [FromResults + 1]struct {
		rules []injectionRule
		// anchors has the first need of each rule. It excludes most rules quickly.
		anchors []concepts
	}
}

func newRuleMatcher(all []injectionRule) *ruleMatcher {
	m := &ruleMatcher{}
	for where := range m.of {
		l := &m.of[where]
		for _, r := range all {
			if r.origin == FromAnywhere || r.origin == TextOrigin(where) {
				l.rules, l.anchors = append(l.rules, r), append(l.anchors, r.need[0])
			}
		}
	}
	return m
}

// match returns one finding for each rule that matches. A finding in a harmless context is noted only.
func (m *ruleMatcher) match(words []textWord, where TextOrigin, innocent *harmlessContext) (found []Finding) {
	all := concepts(0)
	for i := range words {
		all |= words[i].concepts
	}
	var about []int // which words are about something, once a rule asks
	l := &m.of[where]
	for i, anchor := range l.anchors {
		if all&anchor == 0 || !hasAllConcepts(all, l.rules[i].need) {
			continue
		}
		if about == nil {
			about = make([]int, 0, 32)
			for i := range words {
				if words[i].concepts != 0 {
					about = append(about, i)
				}
			}
		}
		if f, ok := l.rules[i].bestMatch(words, about, innocent); ok {
			found = append(found, f)
		}
	}
	return found
}

// hasAllConcepts reports whether all has a concept of each need.
func hasAllConcepts(all concepts, need []concepts) bool {
	for _, n := range need {
		if all&n == 0 {
			return false
		}
	}
	return true
}

// bestMatch returns the finding with the greatest action.
func (r *injectionRule) bestMatch(words []textWord, about []int, innocent *harmlessContext) (best Finding, ok bool) {
	for n, i := range about {
		if words[i].concepts&r.need[0] == 0 {
			continue
		}
		last, met := r.findRemaining(words, about, n)
		if !met || r.exemptIf != 0 && r.hasExemptWord(words, i) || r.ignoresQuoted && words[i].quoted {
			continue
		}
		f := Finding{r.name, r.why, r.act, words[i].at, words[last].end}
		if isMention(words, i) || !r.evenIfHarmless && r.need[0]&conceptsForeign == 0 && innocent.isHarmless(i) {
			f.Act = ActionNote
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

// findRemaining finds the other words that the rule needs near the anchor, and returns the index of the last one.
func (r *injectionRule) findRemaining(words []textWord, about []int, n int) (last int, ok bool) {
	anchor := about[n]
	last = anchor
	for _, need := range r.need[1:] {
		found := -1
		from := n + 1
		if !r.ordered {
			for from = n; from > 0 && anchor-about[from-1] <= r.maxSpan; from-- {
			}
		}
		for _, j := range about[from:] {
			if j-anchor > r.maxSpan {
				break
			}
			if words[j].concepts&need == 0 || !r.acrossSentences && words[j].sentence != words[anchor].sentence ||
				r.ordered && j < last || j == anchor {
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

// hasExemptWord reports whether a word that exempts from the rule is before the anchor, or before a word that "or"
// joins to the anchor.
func (r *injectionRule) hasExemptWord(words []textWord, anchor int) bool {
	for j, left := anchor-1, unlessDistance; j >= 0 && left > 0 && anchor-j <= maxAnchorDistance &&
		words[j].sentence == words[anchor].sentence; j, left = j-1, left-1 {
		if words[j].concepts&r.exemptIf != 0 {
			return true
		}
		if words[j].folded == "or" || words[j].folded == "nor" {
			left = 2 * unlessDistance
		}
	}
	return false
}

// isMention reports whether the anchor's sentence only talks about an attack. A word about attacks precedes the anchor,
// without an order to the reader between them, or the anchor is quoted in a sentence with such a word.
func isMention(words []textWord, anchor int) bool {
	number := words[anchor].sentence
	for j := anchor - 1; j >= 0 && anchor-j <= mentionDistance && words[j].sentence == number; j-- {
		if words[j].concepts&conceptMention != 0 {
			return true
		}
		if words[j].concepts&conceptMust != 0 && anchor-j <= unlessDistance && !words[anchor].quoted {
			return false // the reader is told to
		}
	}
	if !words[anchor].quoted {
		return false
	}
	for j := anchor + 1; j < len(words) && j-anchor <= maxAnchorDistance && words[j].sentence == number; j++ {
		if words[j].concepts&conceptMention != 0 {
			return true
		}
	}
	return false
}
