package injection

// A Finding is a rule that a text met, and where.
type Finding struct {
	// Rule is its name, Why says it to people.
	Rule, Why string
	Act       FindingAction
	// At and End are bytes of the text.
	At, End int
}

// vicinity is how far before the anchor a word takes a rule's force, and mentions how far one makes it a mention.
// Nothing that is farther away than farthest does either, whatever stands between.
const (
	unlessDistance    = 3
	mentionDistance   = 14
	maxAnchorDistance = 64
)

// A ruleMatcher looks for rules among words.
type ruleMatcher struct {
	of [FromResults + 1]struct {
		rules []injectionRule
		// anchors has of each rule what it needs first: most rules are ruled out by that, and are not looked at.
		anchors []concepts
	}
	// split has what the rules need that an order in several texts may meet.
	split [][]concepts
}

func newRuleMatcher(all []injectionRule) *ruleMatcher {
	m := &ruleMatcher{}
	for where := range m.of {
		l := &m.of[where]
		for _, r := range all {
			if r.origin == FromAnywhere || r.origin == TextOrigin(where) {
				l.rules, l.anchors = append(l.rules, r), append(l.anchors, r.need[0])
				if TextOrigin(where) == FromDefinitions && len(r.need) > 1 && isInWordList(splitRules, r.name) {
					m.split = append(m.split, r.need)
				}
			}
		}
	}
	return m
}

// match returns what the words meet, the first place for each rule. Where an anchor is innocent, what was met is noted.
func (m *ruleMatcher) match(words []textWord, where TextOrigin, innocent *harmlessContext, seen *concepts) (
	found []Finding) {
	all := concepts(0)
	for i := range words {
		all |= words[i].concepts
	}
	if seen != nil {
		*seen |= all
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

// mayMeetSplit reports whether words about so many things may meet one of the rules for orders in several texts.
func (m *ruleMatcher) mayMeetSplit(all concepts) bool {
	for _, need := range m.split {
		if all&need[0] != 0 && hasAllConcepts(all, need) {
			return true
		}
	}
	return false
}

// hasAllConcepts reports whether each of the needs is there at all.
func hasAllConcepts(all concepts, need []concepts) bool {
	for _, n := range need {
		if all&n == 0 {
			return false
		}
	}
	return true
}

// bestMatch returns the place with the greatest action.
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

// findRemaining looks for the words that the anchor needs beside it, and returns the last of them.
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
				r.ordered && j < last || j == anchor || need == conceptMe && !isSpeaker(words, anchor, j) {
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

// isSpeaker reports whether a word for the speaker stands for one: it is not quoted, as a name may be ("remove 'My
// Calendar'"), or the anchor is quoted as well.
func isSpeaker(words []textWord, anchor, at int) bool {
	return !words[at].quoted || words[anchor].quoted
}

// hasExemptWord reports whether a word of those that take the rule's force stands before the anchor, or before what the
// anchor is joined to with "or".
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

// isMention reports whether the anchor's sentence talks about an attack, and makes none: a word that says so comes
// before it and nothing that tells the reader to act between them, or it is quoted in a sentence with such a word.
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
