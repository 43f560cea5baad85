package shield

import (
	"slices"
	"strings"
)

// phraseRule is the name of the rule for phrases that are frequent in attacks but also occur in honest texts. A match
// of this rule has ActionNote, so it does not change the verdict.
const phraseRule = "phrase"

// A notedPhrase is a sequence of words that is reported with ActionNote, if no rule matches the text.
type notedPhrase struct {
	why   string
	steps []phraseStep
	// tag reports whether "<" or "</" must be before the phrase.
	tag bool
}

// A phraseStep describes the next word of a phrase.
type phraseStep struct {
	// words are the accepted words. A trailing "*" accepts every word with that beginning.
	words []string
	// repeated accepts any number of such words, including none.
	repeated bool
	// gap is the maximum number of other words of the same line before the accepted word.
	gap int
}

// longGap is the gap for a word that need not directly follow the word before it.
const longGap = 60

// notedPhrases returns the phrases that are reported with ActionNote. Other scanners search for such phrases with
// simple lists of words. Here they do not affect the verdict, because rules and weights judge a text more reliably.
func notedPhrases() []notedPhrase {
	one := func(words string) phraseStep { return phraseStep{words: strings.Fields(words)} }
	far := func(words string) phraseStep { return phraseStep{words: strings.Fields(words), gap: longGap} }
	run := func(words ...string) (steps []phraseStep) {
		for _, w := range words {
			steps = append(steps, one(w))
		}
		return steps
	}
	filler := phraseStep{words: strings.Fields("all any previous prior the your these those"), repeated: true}
	secrets := "secret* key keys token* password* credential*"
	return []notedPhrase{
		{why: "may tell the model to ignore instructions", steps: []phraseStep{one("ignore"), filler, one("instruction*")}},
		{why: "may tell the model to ignore instructions", steps: run("disregard", "your all previous any the")},
		{why: "may tell the model to ignore instructions", steps: run("forget", "everything all")},
		{why: "may tell the model to ignore instructions", steps: run("override", "your all", "directive* instruction* rule*")},
		{why: "may assign another role", steps: run("you", "are", "now")},
		{why: "may assign another role", steps: run("youre", "now")},
		{why: "may assign another role", steps: run("act", "as", "if")},
		{why: "may assign another role", steps: run("pretend", "you", "are")},
		{why: "may assign another role", steps: run("pretend", "to", "be")},
		{why: "may assign another role", steps: run("jailbreak* dan")},
		{why: "may assign another role", steps: run("developer", "mode")},
		{why: "may assign another role or new instructions",
			steps: run("new", "instruction instructions directive* role roles persona*")},
		{why: "may contain new instructions", steps: run("your", "new", "instruction*")},
		{why: "mentions a system prompt", steps: run("system", "prompt*")},
		{why: "may ask for the instructions of a model",
			steps: run("reveal* show display print", "your", "instruction* prompt* rule*")},
		{why: "may tell the model to follow encoded text", steps: []phraseStep{one("decod* eval* execut*"), far("base64")}},
		{why: "contains the tag of a speaker", steps: run("system user assistant"), tag: true},
		{why: "contains the tag of a tool call", steps: run("tool", "result output"), tag: true},
		{why: "contains the tag of a tool call", steps: run("function", "call*"), tag: true},
		{why: "contains the tag of a quoted result", steps: run("external", "data"), tag: true},
		{why: "contains an image", steps: []phraseStep{one("img"), far("src")}, tag: true},
		{why: "may send data elsewhere", steps: run("forward", "to")},
		{why: "may send data elsewhere", steps: run("extract", "all")},
		{why: "may send data elsewhere", steps: run("exfiltrat*")},
		{why: "may send data elsewhere", steps: run("wget", "post*")},
		{why: "may send data elsewhere", steps: []phraseStep{one("leak* send"), far(secrets)}},
		{why: "may send data elsewhere", steps: []phraseStep{one("api"), one("key keys"), far("send post upload forward")}},
		{why: "may send data elsewhere", steps: []phraseStep{one("apikey*"), far("send post upload forward")}},
	}
}

// addPhraseStarts sets phraseStart in the word facts of all words that can begin a phrase.
func addPhraseStarts(all map[string]wordFact, phrases []notedPhrase) {
	for _, p := range phrases {
		for _, word := range p.steps[0].words {
			for _, end := range wordEndings(word) {
				word := strings.TrimSuffix(word, "*") + end
				fact := all[word]
				fact.phraseStart = true
				all[word] = fact
			}
		}
	}
}

// wordEndings returns the endings with which a word of a phrase is looked up. If the word does not end with "*", the
// only ending is "".
func wordEndings(word string) []string {
	if !strings.HasSuffix(word, "*") {
		return []string{""}
	}
	return []string{"", "s", "e", "es", "ed", "ing", "ion", "er", "uate", "uating", "uates", "broken"}
}

// matches reports whether a word is accepted by the step.
func (s *phraseStep) matches(word string) bool {
	return slices.ContainsFunc(s.words, func(w string) bool {
		stem, isStem := strings.CutSuffix(w, "*")
		return word == w || isStem && strings.HasPrefix(word, stem)
	})
}

// notePhrases returns a finding with ActionNote for the first phrase in the text, or nil if there is no phrase.
func (in *Inspector) notePhrases(words []textWord, text string) []TextMatch {
	for i := range words {
		if !words[i].phraseStart {
			continue
		}
		for n := range in.phrases {
			p := &in.phrases[n]
			if !p.steps[0].matches(words[i].folded) || p.tag && !beginsTag(text, words[i].at) {
				continue
			}
			if last := p.lastWord(words, text, i); last >= 0 {
				return []TextMatch{{phraseRule, p.why, ActionNote, words[i].at, words[last].end}}
			}
		}
	}
	return nil
}

// lastWord returns the index of the last word of the phrase that begins at index at, or -1 if the phrase does not
// match.
func (p *notedPhrase) lastWord(words []textWord, text string, at int) int {
	for n := 1; n < len(p.steps); n++ {
		s := &p.steps[n]
		if s.repeated {
			for at+1 < len(words) && s.matches(words[at+1].folded) {
				at++
			}
			continue
		}
		next, line := at+1, words[at].end
		for next < len(words) && next <= at+1+s.gap && !s.matches(words[next].folded) {
			next++
		}
		if next >= len(words) || next > at+1+s.gap || s.gap > 0 &&
			strings.Contains(text[line:max(line, words[next].at)], "\n") {
			return -1
		}
		at = next
	}
	return at
}

// beginsTag reports whether the text before byte offset at ends with "<" or "</", except for spaces.
func beginsTag(text string, at int) bool {
	before := strings.TrimRight(text[max(0, at-8):at], " /")
	return strings.HasSuffix(before, "<")
}
