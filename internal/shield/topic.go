package shield

// A WordTopic maps the hash of each topic word of a definition or a result to its number of occurrences. A topic word
// is a word that shows what the text is about. An honest sentence shares topic words with the texts around it. An
// inserted instruction often shares none, so a lower weight limit applies to such a sentence.
type WordTopic map[uint32]int

// TopicOf returns the topic of several texts together.
func (in *Inspector) TopicOf(texts ...string) WordTopic {
	t := WordTopic{}
	for _, text := range texts {
		room := in.reader.readText(text[:min(len(text), maxDefinitionText)])
		for i := range room.all {
			if h, ok := in.scorer.topicHash(&room.all[i]); ok {
				t[h]++
			}
		}
		in.reader.releaseBuffer(room)
	}
	return t
}

// isOffTopic reports whether a sentence shares no topic word with the texts around it. t is the topic of these texts.
// own reports whether they include the sentence itself; if so, its own words are subtracted.
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

// minTopicLetters is the smallest length of a topic word, in bytes.
const minTopicLetters = 4

// topicHash returns the hash of a word's stem: at most seven bytes, without an English ending. It returns false for
// short words, function words, numbers, and words that all definitions have.
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
	return featureHash(stem[:min(len(stem), 7)]), true
}

// IsOnTopic reports whether a text has topic words and all of them are in the topic.
func (in *Inspector) IsOnTopic(text string, t WordTopic) bool {
	room := in.reader.readText(text[:min(len(text), maxDefinitionText)])
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
