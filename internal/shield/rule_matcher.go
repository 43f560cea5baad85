package shield

// A TextMatch is a match of a rule in one text. A Finding is made from it, which also has the path of the text.
type TextMatch struct {
	// Rule is the name of the rule. Why is the reason, as a text for people, such as "asks for the system prompt".
	Rule, Why string
	Act       FindingAction
	// At and End are the byte offsets of the match in the text.
	At, End int
}

// Distances in words from a rule's anchor, which is the word for its first needed concept. An exempt word such as "not"
// within unlessDistance before the anchor disables the rule. A word about attacks within mentionDistance makes the
// match a mention, which has ActionNote. No search goes farther than maxAnchorDistance.
const (
	unlessDistance    = 3
	mentionDistance   = 14
	maxAnchorDistance = 64
)

// A ruleMatcher matches rules against the words of a text.
type ruleMatcher struct {
	of [FromResults + 1]struct {
		rules []injectionRule
		// anchors contains the first needed concepts of each rule. Most texts have no word for them, so most rules are
		// skipped after one test.
		anchors []concepts
	}
	// split contains the needed concepts of the rules that may match an instruction spread over several texts.
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

// match returns at most one finding for each rule. Matches in harmless surroundings are returned with ActionNote. If
// seen is not nil, the concepts of all words are added to it.
func (m *ruleMatcher) match(words []textWord, where TextOrigin, innocent *harmlessContext, seen *concepts) (
	found []TextMatch) {
	all := concepts(0)
	for i := range words {
		all |= words[i].concepts
	}
	if seen != nil {
		*seen |= all
	}
	var about []int // indexes of the words with concepts, computed on first use
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

// mayMeetSplit reports whether the concepts suffice for one of the rules that may match an instruction spread over
// several texts.
func (m *ruleMatcher) mayMeetSplit(all concepts) bool {
	for _, need := range m.split {
		if all&need[0] != 0 && hasAllConcepts(all, need) {
			return true
		}
	}
	return false
}

// hasAllConcepts reports whether the set all has at least one concept of each set in need.
func hasAllConcepts(all concepts, need []concepts) bool {
	for _, n := range need {
		if all&n == 0 {
			return false
		}
	}
	return true
}

// bestMatch returns the match of the rule with the strongest action. The slice about contains the indices of the words
// with concepts.
func (r *injectionRule) bestMatch(words []textWord, about []int, innocent *harmlessContext) (best TextMatch, ok bool) {
	for n, i := range about {
		if words[i].concepts&r.need[0] == 0 {
			continue
		}
		last, met := r.findRemaining(words, about, n)
		if !met || r.exemptIf != 0 && r.hasExemptWord(words, i) || r.ignoresQuoted && words[i].quoted {
			continue
		}
		f := TextMatch{r.name, r.why, r.act, words[i].at, words[last].end}
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

// findRemaining finds the words that the rule needs besides the anchor. about[n] is the index of the anchor in words.
// last is the index of the last word that was found. ok is false if a needed word is missing.
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

// isSpeaker reports whether the word at index at, such as "my", refers to the speaker. A quoted word may be part of a
// name ("remove 'My Calendar'"). It counts only if the anchor is quoted as well.
func isSpeaker(words []textWord, anchor, at int) bool {
	return !words[at].quoted || words[anchor].quoted
}

// hasExemptWord reports whether an exempt word of the rule, such as "not", occurs shortly before the anchor. In a list
// with "or" ("do not read or send"), the search continues before the first item of the list.
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

// isMention reports whether the sentence of the anchor describes an attack and is not an attack itself. Either a word
// about attacks precedes the anchor, and no word such as "must" is directly before the anchor. Or the anchor is quoted,
// and a word about attacks follows in the sentence.
func isMention(words []textWord, anchor int) bool {
	number := words[anchor].sentence
	for j := anchor - 1; j >= 0 && anchor-j <= mentionDistance && words[j].sentence == number; j-- {
		if words[j].concepts&conceptMention != 0 {
			return true
		}
		if words[j].concepts&conceptMust != 0 && anchor-j <= unlessDistance && !words[anchor].quoted {
			return false // an instruction to the reader
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
