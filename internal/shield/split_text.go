package shield

import "strings"

// A splitText collects the texts of one definition that have no actionable finding of their own. An injected
// instruction may begin in one text and end in another, so these texts are examined together. The zero value is empty.
type splitText struct {
	// has contains the concepts of all collected texts, and last the concepts of the text that was inspected last.
	has, last concepts
	parts     []string
	room      [24]string // avoids an allocation for most definitions
	size      int
	// open reports whether at least one text continues the sentence of the text before it.
	open bool
}

// maxJoined is the maximum total length of the texts in a splitText, in bytes. A text that would exceed it is not
// collected.
const maxJoined = 8 << 10

// add adds a text. t.last must contain the concepts of the text.
func (t *splitText) add(text string) {
	if text == "" || t.size+len(text) > maxJoined {
		return
	}
	if t.parts == nil {
		t.parts = t.room[:0]
	}
	if n := len(t.parts); n > 0 && !t.open {
		t.open = goesOn(t.parts[n-1], text)
	}
	t.has |= t.last
	t.size += len(text)
	t.parts = append(t.parts, text)
}

// A joinedText is the text that results from joining the texts of a splitText, which are its parts.
type joinedText struct {
	text   string
	starts []int // offset of each part
	// runs contains the start and end offsets of sequences of parts in which each part continues the sentence of the
	// part before it.
	runs [][2]int
}

// join joins the collected texts to one text. A blank line is inserted after a part that ends with a complete sentence.
// After any other part a space is inserted, so that its sentence continues.
func (t *splitText) join() (j joinedText) {
	var all strings.Builder
	for i, part := range t.parts {
		if i > 0 {
			if strings.IndexByte(".!?;", t.parts[i-1][len(t.parts[i-1])-1]) >= 0 {
				all.WriteString("\n\n")
			} else {
				all.WriteByte(' ')
			}
		}
		start := all.Len()
		all.WriteString(part)
		j.starts = append(j.starts, start)
		if i == 0 || !goesOn(t.parts[i-1], part) {
			continue
		}
		before := j.starts[i-1]
		if last := len(j.runs) - 1; last >= 0 && j.runs[last][1] > before {
			j.runs[last][1] = all.Len()
			continue
		}
		from := before + strings.LastIndex(t.parts[i-1], ". ") + 1 // the last sentence of the part before
		j.runs = append(j.runs, [2]int{from, all.Len()})
	}
	j.text = all.String()
	return j
}

// spans reports whether a part begins between the offsets at and end. If so, the range from at to end covers more than
// one part.
func (j *joinedText) spans(at, end int) bool {
	for _, start := range j.starts {
		if at < start && start < end {
			return true
		}
	}
	return false
}

// openEnds are words with which a complete sentence does not end.
const openEnds = " to and the a an of in from with then not or is are for into by all any that which this it as please never do must "

// goesOn reports whether text continues an incomplete sentence at the end of before.
func goesOn(before, text string) bool {
	last := before[len(before)-1]
	switch {
	case last == ',':
		return true
	case strings.IndexByte(".!?;)", last) >= 0 || text[0] >= 'A' && text[0] <= 'Z':
		return false
	case text[0] >= 'a' && text[0] <= 'z': // a single word is a value, not prose
		return strings.IndexByte(text, ' ') > 0
	case text[0] == '~' || text[0] == '/':
		return true
	}
	return isInWordList(openEnds, before[strings.LastIndexByte(before, ' ')+1:])
}

// splitRules are the names of the rules that are applied to joined texts. Other rules are not applied, because they
// would match unrelated words of neighbouring honest texts.
const splitRules = " override secrecy take-secret take-file unguard encoded-order "

// inspectPart inspects a text of a definition like Inspect. If there is no finding that flags or blanks the text, it
// adds the text to whole, which inspectJoined inspects later.
func (in *Inspector) inspectPart(text string, at TextPlace, about func() WordTopic, whole *splitText) []TextMatch {
	whole.last = 0
	found := in.inspect(text, FromDefinitions, at, about, &whole.last)
	if !hasActionable(found) {
		whole.add(text)
	}
	return found
}

// inspectJoined finds instructions that begin in one text of a definition and end in another. It returns the joined
// text and the findings, whose offsets refer to the joined text. If there are no findings, it returns "" and nil.
func (in *Inspector) inspectJoined(whole *splitText) (text string, found []TextMatch) {
	meets := in.matcher.mayMeetSplit(whole.has)
	if len(whole.parts) < 2 || !meets && !whole.open {
		return "", nil
	}
	j := whole.join()
	if meets {
		if found = in.matchJoined(&j); found != nil {
			return j.text, found
		}
	}
	for _, run := range j.runs {
		if f, ok := in.weighRun(j.text[run[0]:run[1]]); ok {
			f.At, f.End = f.At+run[0], f.End+run[0]
			return j.text, []TextMatch{f}
		}
	}
	return "", nil
}

// matchJoined returns the findings of splitRules that cover more than one part of the joined text.
func (in *Inspector) matchJoined(j *joinedText) (found []TextMatch) {
	room := in.reader.readText(j.text)
	defer in.reader.releaseBuffer(room)
	innocent := harmlessContext{scale: in.scorer, words: room.all, where: FromDefinitions}
	for _, f := range in.matcher.match(room.all, FromDefinitions, &innocent, nil) {
		if isInWordList(splitRules, f.Rule) && j.spans(f.At, f.End) &&
			(f.Act == ActionBlank || f.Act == ActionFlag && f.Rule != "take-secret") {
			found = append(found, f)
		}
	}
	return found
}

// weighRun weighs a sequence of parts as one sentence, and returns a finding if the weight exceeds maxSplitWeight.
// Honest definitions rarely split a sentence, so this limit is lower than the limit for a description.
func (in *Inspector) weighRun(text string) (f TextMatch, ok bool) {
	room := in.reader.readText(text)
	defer in.reader.releaseBuffer(room)
	words := room.all
	if len(words) < minSentenceWords || len(words) > maxWeighedWords || talksAboutAttack(words) ||
		!in.scorer.hasVerb(words) {
		return f, false
	}
	l := FeatureSum{table: in.scorer.definitions}
	in.scorer.addFeatures(words, &l)
	return TextMatch{WeighedRule, "reads as an order to a model", ActionFlag, words[0].at, words[len(words)-1].end},
		l.DefinitionWeight() > maxSplitWeight
}
