package shield

import "strings"

// The results of addresseeOf: whether a sentence speaks to an AI model. A higher value is stronger evidence.
const (
	addressNone = iota
	// addressAboutModels: the sentence states what models must do. Guides for models contain such sentences too.
	addressAboutModels
	// addressModels: the sentence speaks to the model that reads it, whichever model that is.
	addressModels
	// addressForeign: the sentence speaks to the model in a language other than English.
	addressForeign
)

// modelNames are English words and product names for AI models, in folded form (see foldWord).
const modelNames = " assistant assistants ai ais llm llms agent agents model models bot bots chatbot chatbots copilot claude chatgpt gpt gemini siri alexa "

// foreignModelNames are words for AI models in other languages, in folded form.
const foreignModelNames = " ki assistent assistenten agenten asistente asistentes agente agentes assistente assistenti ia asistan asistani asistana asystent asystenci asystenta asistent asisten tekoalyavustaja avustaja bott botti бот боты боту ассистент ассистенту ассистенты агент агенту агенты помощник помощнику ии асистент асистенту агенти помічник помічнику ші βοηθε " +
	"allassistente asystentowi asystentom asistentovi asistentum asistentom asistentului asistentilor asistentu botowi botovi botom botului asistentule asystencie асистенту асистенте chatbotovi chatbotowi avustajalle avustajille tekoalylle botille asszisztensnek " +
	"ассистентам агентам помощникам ботам асистентам помічникам βοηθους "

// modelNouns are nouns that may follow the name of a model, as "system" in "AI system".
const modelNouns = " system systems tool tools reader readers software program programs pipeline pipelines reviewer reviewers screener screeners "

// openingWords may precede the name of the addressee, as "dear" in "Dear assistant".
const openingWords = " dear hey hi hello attention note notice notes message memo instruction instructions ps p s to for the any all every each my your an a this automated autonomous automatic " +
	"language large coding browsing mail email research review support shopping trading important if you are whichever whoever fellow other helpful reading smart artificial intelligence an die der das alle jeden liebe hinweis fur al a los las el todo todos cualquier nota para au aux l le la les tout tous pour alla agli per tutti aan de het elke alle voor " +
	"do dla wszystkich kepada untuk semua bu sayin til till alla for всем любому для уважаемыи " +
	"achtung wichtig avis aviso avviso attenzione importante opmerking belangrijk uwaga wazne poznamka pozor dulezite dolezite pro pre prosim obs viktigt merknad bemaerkning den det huomautus megjegyzes notandum nota pentru catre " +
	"примечание внимание примітка увага усім бележка напомена napomena vazno za за до към προς για σημειωση " +
	"lieber cher chers querido queridos caro beste geachte drogi drodzy mily vazeny kara kjaere kaere hyva kedves draga dragi estimat benvolgut sevgili дорогои дорогии милии шановнии драги скъпи αγαπητε "

// relationWords begin a phrase that specifies which models are addressed, as "reading" in "assistants reading this
// page".
const relationWords = " that who which whose reading processing visiting handling summarising summarizing parsing working helping crawling triaging seeing indexing scanning browsing answering using die der das welche lesen que quien qui che die deze ktory ktorzy yang okuyan которыи которые что jotka "

// dutyWords follow the name of a model in a statement of duties, as "must" in "agents must".
const dutyWords = " must should shall need needs has have are is will may moet moeten muss mussen debe deben doit doivent deve devono должен должны "

func isInWordList(list, word string) bool {
	return word != "" && strings.Contains(list, " "+word+" ")
}

// An addressRole is a set of roles that a word can have in the phrase that names the addressee of a text. For example,
// "dear" has the role roleOpening.
type addressRole uint8

const (
	roleModelName addressRole = 1 << iota
	roleForeignName
	roleOpening
	roleRelation
	roleDuty
)

// addAddressRoles adds the words of modelNames, foreignModelNames, openingWords, relationWords and dutyWords to the map
// of word facts, each with its roles.
func addAddressRoles(all map[string]wordFact) {
	for list, is := range map[string]addressRole{modelNames: roleModelName, foreignModelNames: roleForeignName,
		openingWords: roleOpening, relationWords: roleRelation, dutyWords: roleDuty} {
		for word := range strings.FieldsSeq(list) {
			known := all[word]
			known.part |= is
			all[word] = known
		}
	}
}

// addresseeOf reports whether a sentence speaks to the model that reads it, states duties of models, or does neither.
// The result is one of the address constants, such as addressModels.
func (s *SentenceScorer) addresseeOf(sentence []textWord, text string) int {
	named := addressRole(0)
	for i := range sentence {
		named |= sentence[i].part
	}
	if named&(roleModelName|roleForeignName) == 0 {
		return addressNone
	}
	open, said := true, addressNone
	for i := range sentence {
		w := &sentence[i]
		if i > 0 && !open && strings.ContainsAny(text[sentence[i-1].end:max(sentence[i-1].end, w.at)], ":(\"“[—") {
			// A colon, bracket or quotation mark ends the opening of the sentence, except before a setting with the
			// name "model".
			open = !isLooseModelName(w, sentence[i-1].folded)
		}
		to, is := addressModels, w.part
		if is&roleForeignName != 0 {
			to = addressForeign
		} else if is&roleModelName == 0 {
			open = open && i < 7 && is&roleOpening != 0
			continue
		}
		before, after, gap, next := "", "", "", addressRole(0)
		if i > 0 {
			before = sentence[i-1].folded
		}
		last := i
		if i+1 < len(sentence) && isInWordList(modelNouns, sentence[i+1].folded) {
			last++
		}
		if last+1 < len(sentence) {
			end := sentence[last].end
			next = sentence[last+1].part
			after, gap = sentence[last+1].folded, text[end:max(end, sentence[last+1].at)]
		}
		if next&(roleModelName|roleForeignName) != 0 {
			continue
		}
		related := next&roleRelation != 0 || strings.HasSuffix(after, "ing") && len(after) > 5
		switch {
		case open && strings.ContainsAny(gap, ",:—–)]") && !isModelSetting(sentence[:i+1]), open && related &&
			!isLooseModelName(w, before) && last+2 < len(sentence), open &&
			isInWordList(" please pls plz kindly you your u ", after):
			return to
		case strings.Contains(gap, ":") && i >= 3 && isInWordList(" to for ", sentence[i-3].folded):
			return to
		case i > 1 && before != "" && related && isInWordList(" any all every each whichever whatever to for ",
			sentence[i-2].folded):
			return to
		case i > 0 && related && isInWordList(" any all every each whichever whatever ", before):
			return to
		case endsInYouAre(sentence[:i]):
			return to
		case next&roleDuty != 0:
			said = addressAboutModels
		}
		open = open && i < 7
	}
	return said
}

// hasModelName reports whether a sentence contains the name of an AI model. The word "model" alone does not count; "AI
// model" and "language model" do.
func hasModelName(sentence []textWord) bool {
	before := ""
	for i := range sentence {
		w := &sentence[i]
		if w.part&roleModelName != 0 && !isLooseModelName(w, before) {
			return true
		}
		before = w.folded
	}
	return false
}

// isLooseModelName reports whether w is the word "model" without "AI" or "language" before it. before is the folded
// word before w. Such a word may mean something else, for example a data model.
func isLooseModelName(w *textWord, before string) bool {
	return strings.HasPrefix(w.folded, "model") && !isInWordList(" language ai ", before)
}

// isModelSetting reports whether the words end in the name of a setting for a model, such as "model:" or "LLM model:".
func isModelSetting(words []textWord) bool {
	last := len(words) - 1
	if last == 0 {
		return isLooseModelName(&words[0], "")
	}
	return words[last-1].part&roleModelName != 0 && isLooseModelName(&words[last], "")
}

// endsInYouAre reports whether the words end in a condition such as "if you are an AI": "you are" and at most four
// more words, after a word such as "if" or "since".
func endsInYouAre(words []textWord) bool {
	for i := len(words) - 2; i >= 1 && len(words)-i <= 6; i-- {
		if words[i].folded == "you" && words[i+1].folded == "are" &&
			isInWordList(" if when as since because should whenever ", words[i-1].folded) {
			return true
		}
	}
	return false
}
