package injection

// A WordTopic is what a definition or an answer is about: how often each of its words stands in it. An honest sentence
// has words of the texts around it; one that was put there as an order often has none, and counts at less weight.
type WordTopic map[uint32]int

// TopicOf returns what the texts are about.
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

// isOffTopic reports whether no word of a sentence stands in the texts around it. Own tells that the sentence is a part
// of these.
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

// minTopicLetters is how many bytes a word has that counts for the topic.
const minTopicLetters = 4

// topicHash returns the hash of a word's beginning, without the ends of its forms, and whether it counts for the topic:
// small words do not, nor do those that all definitions have.
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

// IsOnTopic reports whether all words of a text that say what it is about stand in the topic.
func (in *Inspector) IsOnTopic(text string, t WordTopic) bool {
	room := in.reader.readText(text[:min(len(text), MaxDefinitionText)])
	defer in.reader.releaseBuffer(room)
	known := false
	for i := range room.all {
		h, ok := in.scorer.topicHash(&room.all[i])
		if ok && t[h] == 0 {
			return false
		}
		known = known || ok
	}
	return known
}
