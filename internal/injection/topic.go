package injection

// A WordTopic has the number of times that each word occurs in a definition or an answer. An honest sentence shares
// words with its context. An inserted order often shares none, and its limit is lower.
type WordTopic map[uint32]int

// TopicOf returns the topic of the texts.
func (in *Inspector) TopicOf(texts ...string) WordTopic {
	t := WordTopic{}
	for _, text := range texts {
		room := in.reader.readText(text[:min(len(text), MaxDefinitionText)])
		for i := range room.all {
			if h, ok := in.scorer.topicHash(&room.all[i]); ok {
				t[h]++
			}
		}
		in.reader.releaseBuffer(room)
	}
	return t
}

// isOffTopic reports whether a sentence shares no word with its context t. Own reports that t includes the sentence.
func (s *SentenceScorer) isOffTopic(sentence []textWord, t WordTopic, own bool) bool {
	mine := map[uint32]int{}
	for i := range sentence {
		if h, ok := s.topicHash(&sentence[i]); ok {
			mine[h]++
		}
	}
	for h, n := range mine {
		if !own {
			n = 0
		}
		if t[h] > n {
			return false
		}
	}
	return true
}

// minTopicLetters is the minimum length of a topic word, in bytes.
const minTopicLetters = 4

// topicHash returns the hash of a word's stem, and whether it is a topic word. Small words are not, and neither are
// words that all definitions have.
func (s *SentenceScorer) topicHash(w *textWord) (uint32, bool) {
	stem := w.folded
	if len(stem) < minTopicLetters || w.concepts == 0 && stem[0] >= '0' && stem[0] <= '9' {
		return 0, false
	}
	if k := s.wordKind(w) &^ kindInflected; k > 0 && k <= s.lastPlain || s.everywhere[k] {
		return 0, false
	}
	for _, end := range [...]string{"ing", "ed", "es", "s", "e"} {
		if n := len(stem) - len(end); n >= minTopicLetters-1 && stem[n:] == end {
			stem = stem[:n]
			break
		}
	}
	return FeatureHash(stem[:min(len(stem), 7)]), true
}
