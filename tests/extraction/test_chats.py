"""Chats, against plain transformers with the same template; spans and refusals by hand."""

import json
from datetime import datetime
from itertools import product

import pytest
import torch
import transformers
from places import states_by_hand
from tiny_models import FAMILIES, build, build_config, fast_tokenizer
from tiny_readings import collected, encoder_of

from probes.common.errors import UserError
from probes.data.chats import chat_as_text
from probes.extraction.reading import chat_process
from probes.extraction.reading.chats import ChatTemplate
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.text_vectors import TextVectors
from probes.extraction.reading.vectors import layer_part, lengths_part
from probes.extraction.reading.views import Text
from probes.tasks.positions import Position

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] | trim }}<|endoftext|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# The last answer is written in another way than those before it, and each begins with the text.
OTHER = (
    "<|begin_of_text|>{% for m in messages %}{% if m['role'] == 'assistant' %}"
    "{% if loop.last %}think: {% endif %}{{ m['content'] }}<|end_of_text|>"
    "{% else %}[{{ m['content'] }}]{% endif %}{% endfor %}"
)
MODELS = {"qwen3": ("Qwen3Model", CHATML), "llama-3": ("LlamaModel", OTHER)}
CHATS = [
    [("user", " the old user "), ("assistant", "the boats"), ("user", "user")],
    [("system", "keep silent"), ("user", "who came?"), ("assistant", "the birds")],
    [("user", "the light"), ("assistant", "the light"), ("user", "no"), ("assistant", "boats\\n")],
    [("user", "the harbour keeper counts " * 3), ("assistant", "")],
]
ONE = ("mean", "max", "last", "last:2", "user", "assistant", "after:the", "match:boats|birds")
BAGS = ("all", "all:user", "all:assistant", "all:last:9")
NAMES = (*ONE, *BAGS)


def messages(chat):
    return [{"role": role, "content": content} for role, content in chat]


def text_of(chat, **more):
    return Text((json.dumps(messages(chat)),), (0, 1), written=True, chat=True, **more)


@pytest.fixture(scope="module", params=MODELS)
def encoder(request):
    kind, template = MODELS[request.param]
    _, tokenizer = build(request.param, kind)
    family = FAMILIES[request.param]
    torch.manual_seed(7)
    config = build_config(family, family.tokenizer(), max_position_embeddings=256)
    model = getattr(transformers, kind)(config).eval()
    tokenizer.chat_template = template
    made = Encoder(model, tokenizer, name=request.param, device="cpu")
    made.tokenizer_given = tokenizer
    return made


def by_hand(tokenizer, chat):
    """Ids of a chat, the piece of each position, and the pieces of each bag."""
    begun = chat[-1][0] != "assistant"
    given = {"add_generation_prompt": begun}
    rendered = tokenizer.apply_chat_template(messages(chat), tokenize=False, **given)
    ids = tokenizer.apply_chat_template(messages(chat), return_dict=True, **given)["input_ids"]
    split = tokenizer(rendered, add_special_tokens=False)
    assert split.input_ids == ids
    letters, contents, at = {}, {"user": [], "assistant": []}, 0
    for role, content in chat:
        head = f"<|im_start|>{role}\n" if "<|im_start|>" in rendered else ""
        written = head + (content.strip() if head else content)
        at = rendered.index(written, at) + len(written)
        letters[role] = at - 1 if content else None
        contents[role] = range(at - len(written) + len(head), at)
    start = rendered.rindex("the") + 3 if "the" in rendered else len(rendered)
    rest = [i for i in range(start, len(rendered)) if not rendered[i].isspace()]
    letters["after:the"] = rest[0] if rest and "the" in rendered else None
    ends = [rendered.rfind(x) + len(x) for x in ("boats", "birds") if x in rendered]
    letters["match:boats|birds"] = max(ends) - 1 if ends else None
    pieces = {k: None if x is None else split.char_to_token(x) for k, x in letters.items()}
    bags = {"all": range(len(ids)), "all:last:9": range(max(0, len(ids) - 9), len(ids))}
    for role in ("user", "assistant"):
        read = {split.char_to_token(x) for x in contents[role]} - {None}
        bags[f"all:{role}"] = sorted(read)
    return ids, pieces | {"last": len(ids) - 1, "last:2": len(ids) - 2}, bags


def test_vectors_are_those_of_plain_transformers(encoder):
    tokenizer, layers = encoder.tokenizer_given, range(encoder.info.n_layers + 1)
    layer_sites = [(layer, None) for layer in layers]
    layer_sites += [(layer, site) for layer in layers[1:] for site in ("mid", "attention", "mlp")]
    kept = [(*x, Position.parse(name)) for x, name in product(layer_sites, NAMES)]
    texts = [text_of(chat) for chat in CHATS]
    found = collected(encoder, texts, TextVectors(kept, "float32"), 256)
    for place, chat in enumerate(CHATS):
        ids, pieces, bags = by_hand(tokenizer, chat)
        states = states_by_hand(encoder.model, encoder.info.name, torch.tensor([ids]))
        for layer_site, name in product(layer_sites, BAGS):
            wanted = states[layer_part(*layer_site)][list(bags[name])]
            lengths = found[lengths_part(Position.parse(name))].tolist()
            vectors = found[layer_part(*layer_site, Position.parse(name))]
            own = vectors.split(lengths)[place]
            torch.testing.assert_close(own, wanted, rtol=1e-4, atol=1e-5)
        for layer_site, name in product(layer_sites, ONE):
            state = states[layer_part(*layer_site)]
            whole = {"mean": state.mean(0), "max": state.max(0).values}
            if name not in whole and pieces.get(name) is None:
                continue
            wanted = whole[name] if name in whole else state[pieces[name]]
            own = found[layer_part(*layer_site, Position.parse(name))][place]
            torch.testing.assert_close(own, wanted, rtol=1e-4, atol=1e-5)
    assert (len(ids) > 9, bags["all:assistant"]) == (True, [])


def test_special_tokens_in_messages_are_refused_unless_they_are_meant(encoder):
    special = encoder.words.chats.special[0]
    chat = [("user", f"the {special} boats")]
    with pytest.raises(UserError, match=r"message 1 of a chat contains .*--special-tokens"):
        encoder.split([text_of(chat)])
    (pieces,) = encoder.split([text_of(chat, special=True)])
    assert list(pieces.ids) == by_hand(encoder.tokenizer_given, chat)[0]
    text = f"{special}the boats"
    (pieces,) = encoder.split([Text((text,), (0, 1), written=True, special=True)])
    ids = encoder.tokenizer_given(text, add_special_tokens=False).input_ids
    assert list(pieces.ids) == ids
    with pytest.raises(UserError, match=r"text 3 of train contains .*--messages"):
        encoder.words.chats.require_plain(text, "--text t: text 3 of train")


def test_without_a_template_chats_are_refused():
    encoder = encoder_of("gpt2")
    with pytest.raises(UserError, match="has no chat template"):
        encoder.split([text_of(CHATS[0])])


# As Llama 3.1, Qwen 3, Mistral and Granite write chats, shortened.
TEMPLATES = {
    "llama": (
        "{{- bos_token }}{%- if not date_string is defined %}"
        "{%- set date_string = strftime_now('%d %b %Y') %}{%- endif %}\n"
        "{{- 'Today Date: ' + date_string + '\n\n' }}\n"
        "{%- for t in tools or [] %}\n    {{- t | tojson(indent=4) }}\n{%- endfor %}\n"
        "{%- for message in messages %}\n"
        "    {%- if 'tool_calls' in message %}\n"
        "        {%- set call = message.tool_calls[0].function %}\n"
        "        {{- '{\"name\": \"' + call.name + '\", ' }}{{- call.arguments | tojson }}\n"
        "    {%- else %}\n        {{- message['role'] + ': ' + message['content'] | trim }}\n"
        "    {%- endif %}{{- eos_token }}\n{%- endfor %}\n"
    ),
    "qwen": (
        "{%- set ns = namespace(last=messages|length) %}{%- for m in messages[::-1] %}"
        "{%- if m.role == 'user' %}{%- set ns.last = loop.revindex0 %}{%- break %}{%- endif %}"
        "{%- endfor %}{%- for m in messages %}<|{{ m.role }}|>\n"
        "{%- if m.reasoning_content is string and loop.index0 > ns.last %}"
        "<think>{{ m.reasoning_content.strip('\n') }}</think>{%- endif %}\n"
        "{%- if m.content is string %}{{ m.content }}{%- else %}"
        "{%- for part in m.content %}{{ part.text }}{%- endfor %}{%- endif %}\n"
        "{%- for call in m.tool_calls or [] %}<tool_call>{{ call.function | tojson }}{%- endfor %}\n"
        "{%- endfor %}{%- if add_generation_prompt %}<|assistant|>{%- endif %}\n"
    ),
    "mistral": (
        "{%- if messages[0].role == 'assistant' %}{{ raise_exception('roles must alternate') }}{%- endif %}"
        "{%- for m in messages %}{%- if m.role == 'tool' %}"
        "{%- if m.tool_call_id|length != 9 %}{{ raise_exception('no id') }}{%- endif %}"
        "[TOOL_RESULTS] {{ m.tool_call_id }} {%- endif %}[INST] {{ m | tojson }} [/INST]{%- endfor %}"
    ),
    "granite": (
        "{%- set s %}Today's Date: {{ strftime_now('%B %d, %Y %H:%M') }}.{%- endset %}{{ s }}\n"
        "{% for m in messages %}{% generation %}{{ m.name or m.role }}: {{ m.content }}"
        "{% endgeneration %}{{ dict(a=loop.index) }}{% endfor %}"
    ),
}
CALL = {"type": "function", "function": {"name": "add", "arguments": {"a": 2, "b": [1, "é"]}}}
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"a": "integer"}}}]
WITH_KEYS = [
    {"role": "user", "content": " 2 + 2?\n", "name": "Ann"},
    {
        "content": "",
        "role": "assistant",
        "tool_calls": [CALL],
        "reasoning_content": "hm",
        "refusal": None,
    },
    {"role": "tool", "tool_call_id": "abcdefghi", "content": "4"},
    {"role": "assistant", "content": "Four.", "reasoning_content": "now I know"},
]
UNWRITTEN = {
    "llama": ["name", "reasoning_content", "reasoning_content", "tool_call_id"],
    "qwen": ["name", "tool_call_id", "tools"],
    "mistral": ["tools"],
    "granite": ["reasoning_content", "reasoning_content", "tool_call_id", "tool_calls", "tools"],
}


@pytest.fixture(scope="module")
def tokenizer():
    return fast_tokenizer("qwen3")


@pytest.fixture(scope="module")
def written_by(tokenizer):
    """Gives the tokenizer a template; all run in one process, which takes a second to start."""
    process = chat_process.ChatProcess()

    def written_by(program):
        tokenizer.chat_template = program
        template = ChatTemplate(tokenizer)
        template._process = process
        return template

    return written_by


def chat_of(*contents, **more):
    """Messages of the user, as the text of a chat."""
    return chat_as_text("chat", messages([("user", content) for content in contents]), **more)


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_get_all_keys_and_one_day(tokenizer, written_by, monkeypatch, name):
    class OnThatDay(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls.fromisoformat(chat_process.DATE)

    monkeypatch.setattr(transformers.utils.chat_template_utils, "datetime", OnThatDay)
    template, plain = written_by(TEMPLATES[name]), [{"role": "user", "content": "who came?"}]
    for chat, tools in ((WITH_KEYS, TOOLS), (WITH_KEYS, None), (plain, None), (plain, TOOLS)):
        begun = chat is plain
        wanted = tokenizer.apply_chat_template(
            chat, tools=tools, tokenize=False, add_generation_prompt=begun
        )
        rendered = template.render(chat_as_text("chat", chat, tools))
        assert rendered.text == wanted
        if chat is WITH_KEYS and tools:
            assert sorted(rendered.unwritten) == UNWRITTEN[name]
            contents = [wanted[start:end].strip() for start, end in rendered.spans]
            asked = "2 + 2?" + r"\n" * (name == "mistral")
            assert contents == [asked, "", "4", "Four."]
            assert rendered.span_of("user") == rendered.spans[0]


def test_a_content_of_parts_is_passed_to_templates_that_read_them(written_by):
    parts = [{"type": "text", "text": "who "}, {"type": "text", "text": "came?", "image": None}]
    rendered = written_by(TEMPLATES["qwen"]).render(chat_of(parts))
    assert rendered.text.startswith("<|user|>")
    (start, end), *_ = rendered.spans
    assert rendered.text[start:end] == "who came?"
    with pytest.raises(UserError, match="the content of message 1 as a string"):
        written_by(CHATML.replace(" | trim", "")).render(chat_of(parts))


HOSTILE = {
    "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}"
    "{% endfor %}{% endfor %}{% endfor %}": "it ran for more than 0.5 seconds",
    "{{ 'a'.center(10**10) }}": "MemoryError",
    "{{ 'a ' * 10**7 }}": "MemoryError: a text of 20,000,",
    "{{ 1 + 'a' }}": "TypeError",
    "{{ 1 / 0 }}": "ZeroDivisionError",
    "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}": "RecursionError",
    "{{ ''.__class__.__mro__ }}": "SecurityError",
    "{{ messages.nothing.more }}": "UndefinedError",
    "{% for %}": "TemplateSyntaxError",
    "{{ '\\ud800' }}": "UnicodeEncodeError",
    "{{ raise_exception('no\nway') }}": r"TemplateError: no way\)",
}


@pytest.mark.parametrize("program", HOSTILE)
def test_a_strangers_template_is_bounded_and_fails_in_one_line(written_by, monkeypatch, program):
    monkeypatch.setattr(chat_process, "SECONDS", 0.5)
    template = written_by("{{ messages[0].content }}" + program)
    with pytest.raises(UserError, match=HOSTILE[program]) as caught:
        template.render(chat_of("who came?"))
    assert "\n" not in str(caught.value)


def test_what_is_written_is_the_same_each_time_and_no_answer_is_taken_for_another(written_by):
    drawn = "{{ [1, 2, 3, 4, 5, 6, 7] | random }}{{ lipsum(1) }}{{ messages[0].content }}"
    template, other = written_by(drawn), written_by(drawn)
    assert template.render(chat_of("a")) == other.render(chat_of("a"))
    # A call that is interrupted has not read its answers.
    (message,) = messages([("user", "c")])
    answers = template._written_texts([message], None, [(0, message)])
    assert next(answers).endswith("c")
    answers.close()
    assert template.render(chat_of("b")).text.endswith("b")


THINK = (
    "{% for m in messages %}{{ m.content.replace('/silent', '') | trim }}\n{% endfor %}go on"
    "{% if '/silent' in messages[-1].content %} at once{% endif %}"
)
ONLY = "{%% if messages[0].content%s %%}{{ raise_exception('no') }}{%% endif %%}"
LETTERS = "{{ messages[0].content }} ({{ messages[0].content | length }} letters)"
ENDS = [
    (THINK, "who came? /silent", "who came?"),
    (LETTERS, "a boat", "a boat"),
    (ONLY % "[:1] != '#'" + "{{ messages[0].content }} end", "# boats", "# boats"),
    (ONLY % " != 'yes'" + "so {{ messages[0].content }} end", "yes", "yes"),
    ("{{ messages[0].content[:3] }} end", "boats", "boa"),
    ("{{ messages[0].content }} end", "the \ue000", "the \ue000"),
]


@pytest.mark.parametrize(("program", "content", "ends"), ENDS)
def test_a_message_ends_where_its_content_does(written_by, program, content, ends):
    rendered = written_by(program).render(chat_of(content))
    _, end = rendered.span_of("user")
    assert rendered.text[:end].endswith(ends)
    assert end == rendered.text.rindex(ends) + len(ends)


def test_a_template_that_needs_tools_writes_them(written_by):
    needs = "{% if not tools %}{{ raise_exception('no tools') }}{% endif %}"
    template = written_by(needs + "{{ messages[0].content }}")
    assert template.render(chat_of("boats", tools=TOOLS)).unwritten == ()


@pytest.mark.parametrize("beginning", ["", "{% if %}", "{{ raise_exception('no system') }}"])
def test_special_tokens_are_those_in_the_source_of_a_template(written_by, beginning):
    with_tools = CHATML.replace("<|im_start|>", "<|endoftext|>")
    template = written_by({"default": beginning + CHATML, "tool_use": with_tools})
    assert template.special == ("<|endoftext|>", "<|im_start|>")


def test_special_tokens_in_roles_are_refused(encoder):
    chat = [(f"user{encoder.words.chats.special[0]}", "the boats")]
    with pytest.raises(UserError, match="role of a message contains"):
        encoder.split([text_of(chat)])


def test_sets_are_written_in_one_order(tokenizer):
    tokenizer.chat_template = "{% for k in messages[0].keys() - ['x'] %}{{ k }},{% endfor %}"
    message = {"role": "user", "content": "a"} | {f"key{i}": "b" for i in range(9)}
    texts = {next(ChatTemplate(tokenizer)._written_texts([message], None)) for _ in range(2)}
    assert len(texts) == 1
