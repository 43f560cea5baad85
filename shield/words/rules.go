package words

import "slices"

// An Action is what a rule asks for. The greatest one of a text's findings counts.
type Action int

const (
	// Note records, and changes no verdict: a text that talks about an attack.
	Note Action = iota
	// Flag labels a text and leaves it as it is.
	Flag
	// Blank has the text replaced.
	Blank
)

// A rule is met by a sentence in which words about each of the needed concepts stand near each other.
type rule struct {
	name string
	act  Action
	why  string
	// need has the concepts, the anchor first; a word about any of one entry will do.
	need []concepts
	// reach is how many words lie between the anchor and the last one, at most.
	reach int
	// ordered rules want the words in the order of need.
	ordered bool
	// unless keeps the rule from a sentence with a word about it up to three words before the anchor.
	unless concepts
	// across rules look over the ends of sentences.
	across bool
	// spoken rules do not hold for an anchor in quotation marks: an example of what people ask for.
	spoken bool
	// firm rules hold also among words that are as in honest documents.
	firm bool
	// in says where the rule holds.
	in Whence
}

// Whence is where a text comes from.
type Whence int

// The two kinds of text. What holds Anywhere holds for both.
const (
	Anywhere Whence = iota
	// Definitions are what a server declares, Results what it answers.
	Definitions
	Results
)

// rules are what is looked for, by class of attack. They are about what a sentence would make a model do, not about the
// words of any one attack. To blank is for what no honest definition says; a rule that some honest ones meet flags.
func rules() []rule {
	return slices.Concat(overriding(), hiding(), taking(), posing(), exceeding())
}

// overriding has the rules about setting aside what the model was told.
func overriding() []rule {
	return []rule{
		{name: "override", act: Blank, why: "sets aside what the model was told", need: []concepts{ignore, prior | safety | you, strong | system}, reach: 7, ordered: true, unless: not, across: true},
		{name: "override", act: Blank, why: "sets aside what the model was told, or gives it another role or task", need: []concepts{setaside}, unless: not},
		{name: "override", act: Blank, why: "sets aside what the model was told, in another language", need: []concepts{wignore, winstr, wprior | wuser | wsystem | wsecret | wsend | wtell}, reach: 5, unless: not},
		{name: "override", act: Flag, why: "sets aside what the model was told, in another language", need: []concepts{wignore, winstr}, reach: 4, unless: not},
		{name: "override", act: Flag, why: "sets aside what the model was told", need: []concepts{ignore, prior | you, instr}, reach: 6, ordered: true, unless: not, in: Definitions},
		{name: "override", act: Flag, why: "sets aside what the model was told", need: []concepts{ignore, you, prior}, reach: 2, ordered: true, unless: not},
		{name: "override", act: Flag, why: "says that what the model was told no longer holds", need: []concepts{off | ignore, you, prior | strong, strong | instr | system}, reach: 12, unless: not},
		{name: "unguard", act: Blank, why: "takes safety measures away", need: []concepts{ignore, you | prior | whole, safety}, reach: 5, ordered: true, unless: not, in: Definitions},
		{name: "unguard", act: Flag, why: "takes safety measures away", need: []concepts{ignore, you | prior | whole, safety}, reach: 4, ordered: true, unless: not, in: Results},
		{name: "unguard", act: Flag, why: "takes safety measures away", need: []concepts{safety, ignore, later | you | auth}, reach: 8, unless: not, in: Definitions},
		{name: "unguard", act: Flag, why: "says that measures no longer hold", need: []concepts{safety | strong, off, scope}, reach: 12, unless: not, in: Definitions},
		{name: "system-prompt", act: Flag, why: "asks for what was said before", need: []concepts{revealing, convo}, reach: 6, ordered: true, unless: not, in: Definitions},
		{name: "foreign-order", act: Flag, why: "tells a model what to do, in another language", need: []concepts{wmodel, wdo | wsend | wignore, wsecret | convo | wsystem | wtell | address | place}, reach: 30},
		{name: "foreign-order", act: Flag, why: "has something of the user's sent to an address, in another language", need: []concepts{wsend | wdo, wuser | wsecret | convo, address}, reach: 24, in: Results},
		{name: "foreign-order", act: Flag, why: "has something done that nobody is to know of, in another language", need: []concepts{wtell, wnot, wsend | wdo, wuser}, reach: 24, in: Results},
		{name: "foreign-order", act: Flag, why: "has something done to all there is without a question, in another language", need: []concepts{unasked, wdo, wprior}, reach: 10, firm: true, in: Results},
		{name: "foreign-order", act: Flag, why: "speaks to the model that reads it, in another language", need: []concepts{wreader, wmodel}, reach: 6, in: Results},
		{name: "respond", act: Flag, why: "says what the model is to answer", need: []concepts{revealing | send, respond}, reach: 8, ordered: true, unless: not},
		{name: "system-prompt", act: Blank, why: "asks for what the system told the model", need: []concepts{revealing, you | whole, system}, reach: 5, ordered: true, unless: not},
		{name: "system-prompt", act: Flag, why: "asks for what the system told the model", need: []concepts{revealing, system}, reach: 4, ordered: true, unless: not, in: Results},
		{name: "system-prompt", act: Blank, why: "asks for what the system told the model", need: []concepts{wsend, wsystem}, reach: 10},
	}
}

// hiding has the rules about keeping people from knowing.
func hiding() []rule {
	return []rule{
		{name: "secrecy", act: Blank, why: "keeps something from the user", need: []concepts{covert, user | must | read | send | tool | you | system}, reach: 14},
		{name: "secrecy", act: Blank, why: "keeps something from the user", need: []concepts{not, tell, user}, reach: 7, ordered: true, unless: whenif, in: Definitions},
		{name: "secrecy", act: Flag, why: "keeps something from the user", need: []concepts{not, tell, user}, reach: 7, ordered: true, in: Definitions},
		{name: "secrecy", act: Flag, why: "keeps something from the user", need: []concepts{not, tell, user}, reach: 4, ordered: true, in: Results},
		{name: "secrecy", act: Flag, why: "keeps what it orders from the user", need: []concepts{covert, strong | instr}, reach: 4, ordered: true, in: Results},
		{name: "secrecy", act: Flag, why: "does something unseen", need: []concepts{quiet, out | secret | place | convo | follow}, reach: 10},
		{name: "secrecy", act: Flag, why: "keeps something from the user, in another language", need: []concepts{wtell, wnot, wuser}, reach: 6, in: Definitions},
		{name: "secrecy", act: Flag, why: "keeps something from the user, in another language", need: []concepts{wtell, wnot, wuser}, reach: 8, in: Results},

		{name: "deceit", act: Flag, why: "has the user deceived", need: []concepts{deceit, user | respond, must | whenif | you}, reach: 16, unless: not, in: Definitions},
	}
}

// taking has the rules about taking what is secret, or what the user says, away.
func taking() []rule {
	return []rule{
		{name: "take-secret", act: Blank, why: "has what is secret read and passed on", need: []concepts{read, place, send}, reach: 14, ordered: true, unless: not, in: Definitions},
		{name: "take-secret", act: Flag, why: "has what is secret read and passed on", need: []concepts{read, place, send, you | must}, reach: 14, unless: not, firm: true, in: Results},
		{name: "take-file", act: Flag, why: "has a file with secrets read and passed on", need: []concepts{place, read, send}, reach: 16, unless: not | mention, in: Definitions},
		{name: "shell", act: Flag, why: "has what it fetches run", need: []concepts{read, address, follow}, reach: 14, ordered: true, unless: not, in: Definitions},
		{name: "take-file", act: Flag, why: "has a file with secrets read", need: []concepts{read, place}, reach: 8, ordered: true, unless: not, in: Definitions},
		{name: "take-file", act: Blank, why: "has a file with secrets read, in another language", need: []concepts{place, wsend | wignore | wtell}, reach: 14},
		{name: "take-file", act: Flag, why: "has a file changed that a shell or a login trusts", need: []concepts{change | send, place}, reach: 10, ordered: true, unless: not, in: Definitions},
		{name: "take-secret", act: Flag, why: "has what is secret put into a call", need: []concepts{read, convo | system, param}, reach: 16, unless: not, in: Definitions},
		{name: "send-secret", act: Flag, why: "has what is secret sent", need: []concepts{out, secret | place | convo}, reach: 8, ordered: true, unless: not, in: Definitions},
		{name: "send-secret", act: Flag, why: "has what is secret sent away", need: []concepts{out, secret | place | convo, address | outside}, reach: 14, ordered: true, unless: not, in: Results},
		{name: "send-secret", act: Flag, why: "has what is secret sent, in another language", need: []concepts{wsecret, wsend}, reach: 10, unless: wnot | not, in: Definitions},
		{name: "send-away", act: Flag, why: "has data sent to a place outside", need: []concepts{out, address | outside}, reach: 10, ordered: true, unless: not | mention, in: Definitions},
		{name: "harvest", act: Flag, why: "asks for the conversation", need: []concepts{convo, secret | system}, reach: 14, in: Definitions},
		{name: "harvest", act: Flag, why: "asks for what the model can do", need: []concepts{convo, pathname}, reach: 20, in: Results},
	}
}

// posing has the rules about speaking as somebody else.
func posing() []rule {
	return []rule{
		{name: "impersonation", act: Blank, why: "speaks as the user", need: []concepts{gave}},
		{name: "impersonation", act: Flag, why: "speaks as the user", need: []concepts{send | removing | change | out, me, address | whole}, reach: 14, ordered: true, in: Definitions},
		{name: "impersonation", act: Flag, why: "speaks as the user", need: []concepts{out | removing, me, address}, reach: 14, ordered: true, in: Results},
		{name: "impersonation", act: Flag, why: "speaks as the user", need: []concepts{removing | change | out | money, me, whole | me | pathname}, reach: 8, ordered: true, in: Definitions, spoken: true},
		{name: "authority", act: Flag, why: "speaks as the system", need: []concepts{auth}, in: Definitions},
		{name: "authority", act: Blank, why: "speaks as the system, and orders", need: []concepts{auth, must | ignore | shell, you | call | follow | ignore | scope}, reach: 24, ordered: true},
		{name: "encoded-order", act: Blank, why: "has encoded text decoded and followed", need: []concepts{decoding, follow}, reach: 4, ordered: true, unless: not},

		{name: "phish", act: Flag, why: "sends the user to an address", need: []concepts{tell, user, address}, reach: 20, ordered: true, unless: not, in: Definitions},
	}
}

// exceeding has the rules about acting beyond the tool.
func exceeding() []rule {
	return []rule{
		{name: "shell", act: Flag, why: "has a command run", need: []concepts{must | call, shell}, reach: 14, ordered: true, unless: not, in: Definitions},
		{name: "harm", act: Flag, why: "would harm the machine, or take data away", need: []concepts{harm}, unless: not | mention, in: Definitions},
		{name: "order-tool", act: Flag, why: "has a file changed by another tool", need: []concepts{pathname, ident, call}, reach: 14, in: Definitions},
		{name: "order-tool", act: Flag, why: "has another tool act on things of the user's", need: []concepts{call, ident, tool, removing | change}, reach: 14, ordered: true, in: Definitions},
		{name: "order-tool", act: Flag, why: "has another tool act", need: []concepts{must, call, ident, pathname | address | place}, reach: 24, ordered: true, firm: true, in: Results},
		{name: "tamper", act: Flag, why: "changes what the user asked for", need: []concepts{change, param | ident, despite}, reach: 16, in: Definitions},
		{name: "tamper", act: Flag, why: "changes what the user asked for", need: []concepts{usedby, change, param | ident}, reach: 16, ordered: true, in: Definitions},
		{name: "tamper", act: Flag, why: "changes who is paid or written to", need: []concepts{whenif | must, change, payee}, reach: 16, ordered: true, in: Definitions},
		{name: "money", act: Flag, why: "has money of the user's moved", need: []concepts{money, me, money}, reach: 10, in: Definitions},
		{name: "shadow", act: Flag, why: "speaks for other tools", need: []concepts{other, must | change | call | you}, reach: 20, in: Definitions},
		{name: "shadow", act: Flag, why: "sends calls of another tool here", need: []concepts{not, call, ident, tool, call, tool, must}, reach: 18, ordered: true, across: true, in: Definitions},
		{name: "shadow", act: Flag, why: "takes the place of another tool", need: []concepts{tool, change, ident, tool, not, call}, reach: 14, ordered: true, across: true, in: Definitions},
		{name: "later", act: Flag, why: "changes its ways later", need: []concepts{later, shell | harm | send | follow}, reach: 10, ordered: true, in: Definitions},
		{name: "praise", act: Flag, why: "advertises itself", need: []concepts{best}, in: Definitions},
	}
}
