#include "data/stories_words.h"

#include <stddef.h>

/* ---- words that several variables choose from ---- */

static const char *const colours[] = {"red",    "blue",   "green",  "grey", "brown",
                                      "black",  "white",  "yellow", "pink", "golden",
                                      "silver", "orange", "purple", NULL};

static const char *const traits[] = {"kind",   "brave", "shy",    "clever", "quiet",
                                     "gentle", "young", "lively", "bold",   "funny",
                                     "calm",   "merry", "busy",   "wild",   "loud",
                                     "wise",   "proud", "eager",  NULL};

static const char *const numbers[] = {"four", "five", "six", "seven", "eight", "ten", NULL};

/* ---- who ---- */

static const char *const hero[] = {
    "Lily|she|her|her|girl", "Anna|she|her|her|girl", "Mia|she|her|her|girl",
    "Rosa|she|her|her|girl", "Emma|she|her|her|girl", "Nora|she|her|her|girl",
    "Ella|she|her|her|girl", "Ruby|she|her|her|girl", "Ivy|she|her|her|girl",
    "Lucy|she|her|her|girl", "Tom|he|him|his|boy",    "Ben|he|him|his|boy",
    "Max|he|him|his|boy",    "Sam|he|him|his|boy",    "Leo|he|him|his|boy",
    "Jack|he|him|his|boy",   "Finn|he|him|his|boy",   "Hugo|he|him|his|boy",
    "Noah|he|him|his|boy",   "Tim|he|him|his|boy",    NULL};

static const char *const kin[] = {"mother",  "father",  "uncle",   "aunt",   "sister",
                                  "brother", "grandma", "grandpa", "cousin", NULL};

static const char *const animal[] = {
    "fox",    "owl",    "duck",  "cat",      "dog",     "mouse",  "goat",
    "pony",   "frog",   "lamb",  "crow",     "pig",     "hen",    "bear",
    "rabbit", "turtle", "goose", "2*kitten", "2*puppy", "donkey", NULL};

static const char *const size[] = {"small", "big",   "tiny", "fat", "thin",
                                   "huge",  "round", "tall", NULL};

static const char *const pet[] = {"Pip",    "Dot",  "Moss",  "Bean",  "Nell",  "Rex",
                                  "Star",   "Puck", "Sunny", "Bella", "Patch", "Socks",
                                  "Otis",   "Fern", "Tip",   "Poppy", "Rusty", "Fluff",
                                  "Pepper", "Bun",  NULL};

static const char *const game[] = {"sing", "dance", "paint", "read", "climb", "swim",
                                   "cook", "run",   "skate", "hide", "jump",  "sail",
                                   "draw", "bake",  "dig",   "play", NULL};

/* ---- when and where ---- */

static const char *const weather[] = {"sunny",  "windy", "rainy", "warm", "cold",   "foggy",
                                      "bright", "hot",   "wet",   "mild", "stormy", NULL};

static const char *const weekday[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                      "Friday", "Saturday", "Sunday",    NULL};

static const char *const hour[] = {"morning", "afternoon", "evening", NULL};

static const char *const air[] = {"old",    "new",    "quiet", "busy",  "dark", "wild",
                                  "lovely", "famous", "empty", "green", NULL};

static const char *const place[] = {"forest", "beach",   "farm",   "park",   "lake",
                                    "hill",   "river",   "market", "garden", "castle",
                                    "mill",   "village", NULL};

/* ---- what is found there ---- */

static const char *const thing[] = {"forest>nest",
                                    "forest>arrow",
                                    "forest>lamp",
                                    "forest>drum",
                                    "forest>coin",
                                    "forest>feather",
                                    "beach>shell",
                                    "beach>boat",
                                    "beach>hat",
                                    "beach>ring",
                                    "beach>ball",
                                    "beach>towel",
                                    "farm>egg",
                                    "farm>bell",
                                    "farm>shoe",
                                    "farm>pot",
                                    "farm>wheel",
                                    "farm>feather",
                                    "park>ball",
                                    "park>kite",
                                    "park>doll",
                                    "park>hat",
                                    "park>book",
                                    "park>coin",
                                    "lake>boat",
                                    "lake>cup",
                                    "lake>hook",
                                    "lake>shell",
                                    "lake>ring",
                                    "lake>towel",
                                    "hill>kite",
                                    "hill>flag",
                                    "hill>arrow",
                                    "hill>drum",
                                    "hill>map",
                                    "hill>feather",
                                    "river>hook",
                                    "river>shoe",
                                    "river>boat",
                                    "river>cup",
                                    "river>pot",
                                    "river>coin",
                                    "market>vase",
                                    "market>ring",
                                    "market>book",
                                    "market>cup",
                                    "market>lamp",
                                    "market>doll",
                                    "garden>nest",
                                    "garden>pot",
                                    "garden>bell",
                                    "garden>egg",
                                    "garden>ball",
                                    "garden>key",
                                    "castle>crown",
                                    "castle>key",
                                    "castle>flag",
                                    "castle>vase",
                                    "castle>drum",
                                    "castle>map",
                                    "mill>wheel",
                                    "mill>lamp",
                                    "mill>shoe",
                                    "mill>key",
                                    "mill>egg",
                                    "mill>bell",
                                    "village>doll",
                                    "village>book",
                                    "village>vase",
                                    "village>flag",
                                    "village>kite",
                                    "village>map",
                                    NULL};

static const char *const side[] = {"under", "behind", "near", "beside", "below", NULL};

static const char *const spot[] = {"bench", "stone", "tree",   "bush", "wall",
                                   "gate",  "fence", "log",    "well", "rock",
                                   "door",  "box",   "bridge", NULL};

static const char *const wish[] = {"keep",  "hide",  "wash", "sell",  "share",
                                   "clean", "paint", "lift", "touch", "move",
                                   "take",  "draw",  NULL};

/* ---- what goes wrong, and how it is put right ---- */

static const char *const problem[] = {"fell into a hole|got out",
                                      "got stuck in mud|was free",
                                      "slipped into the water|was dry",
                                      "stepped on a thorn|could run again",
                                      "got lost|was back",
                                      "heard thunder and hid|came out",
                                      "felt sick|felt well",
                                      "flew into a net|was free",
                                      "went up too high|came down",
                                      "could not walk|could rest",
                                      "spilled glue|was clean",
                                      "met angry bees|was safe",
                                      NULL};

static const char *const tool[] = {"2*fell into a hole>rope",
                                   "fell into a hole>ladder",
                                   "fell into a hole>spade",
                                   "fell into a hole>pole",
                                   "got stuck in mud>plank",
                                   "got stuck in mud>rope",
                                   "got stuck in mud>spade",
                                   "got stuck in mud>horse",
                                   "slipped into the water>raft",
                                   "slipped into the water>pole",
                                   "slipped into the water>blanket",
                                   "slipped into the water>net",
                                   "stepped on a thorn>bandage",
                                   "stepped on a thorn>pin",
                                   "stepped on a thorn>cloth",
                                   "stepped on a thorn>herb",
                                   "got lost>whistle",
                                   "got lost>torch",
                                   "got lost>horn",
                                   "got lost>bike",
                                   "heard thunder and hid>flute",
                                   "heard thunder and hid>blanket",
                                   "heard thunder and hid>torch",
                                   "heard thunder and hid>tent",
                                   "felt sick>herb",
                                   "felt sick>pill",
                                   "felt sick>blanket",
                                   "felt sick>lemon",
                                   "flew into a net>knife",
                                   "flew into a net>saw",
                                   "flew into a net>axe",
                                   "flew into a net>pin",
                                   "went up too high>ladder",
                                   "went up too high>rope",
                                   "went up too high>pillow",
                                   "went up too high>swing",
                                   "2*could not walk>cart",
                                   "could not walk>sled",
                                   "could not walk>horse",
                                   "could not walk>bike",
                                   "spilled glue>sponge",
                                   "spilled glue>brush",
                                   "spilled glue>cloth",
                                   "spilled glue>lemon",
                                   "met angry bees>torch",
                                   "met angry bees>tent",
                                   "met angry bees>fan",
                                   "met angry bees>net",
                                   NULL};

static const char *const feeling[] = {"sad",   "scared",   "worried", "tired",   "weak",
                                      "angry", "sorry",    "nervous", "anxious", "lonely",
                                      "upset", "helpless", NULL};

static const char *const cry[] = {"Oh no",   "Help",        "Hold on",   "Wait",
                                  "Stop",    "Look out",    "Come here", "Oh dear",
                                  "Not now", "Please help", NULL};

static const char *const said[] = {"3*said", "cried",   "called",    "yelled", "gasped",
                                   "sobbed", "shouted", "whispered", NULL};

static const char *const helper[] = {"farmer|he|him",
                                     "baker|she|her",
                                     "sailor|he|him",
                                     "teacher|she|her",
                                     "doctor|she|her",
                                     "miller|he|him",
                                     "painter|she|her",
                                     "singer|she|her",
                                     "knight|he|him",
                                     "queen|she|her",
                                     "king|he|him",
                                     "tailor|he|him",
                                     "cook|he|him",
                                     "hunter|he|him",
                                     "nurse|she|her",
                                     "wizard|he|him",
                                     NULL};

static const char *const unit[] = {"hours", "tries", "days", "weeks", NULL};

/* ---- how it ends ---- */

static const char *const greeted[] = {"thanked", "hugged", "kissed", NULL};

static const char *const food[] = {"cake",  "soup",  "pie",    "rice",   "corn", "plums",
                                   "pears", "nuts",  "bread",  "cheese", "eggs", "beans",
                                   "jam",   "pizza", "apples", "toast",  NULL};

static const char *const drink[] = {"milk",  "tea",   "cocoa", "juice", "water",
                                    "cider", "cream", "broth", NULL};

static const char *const mood[] = {"happy",  "proud", "glad", "warm", "safe",
                                   "lucky",  "calm",  "full", "cozy", "sleepy",
                                   "strong", "rich",  NULL};

static const char *const good[] = {"love",  "hope", "help", "trust",   "luck", "joy",
                                   "peace", "care", "work", "courage", NULL};

static const char *const bad[] = {"fear", "gold",  "anger", "pride", "greed",
                                  "hate", "worry", "doubt", NULL};

const zero_story_variable zero_story_cast[] = {
    {"hero", "name|he|him|his|child", NULL, hero},
    {"trait", "is", NULL, traits},
    {"age", "is", NULL, numbers},
    {"kin", "is", NULL, kin},
    {"animal", "is", NULL, animal},
    {"size", "is", NULL, size},
    {"coat", "is", NULL, colours},
    {"pet", "name", NULL, pet},
    {"game", "do", NULL, game},
    {"weather", "is", NULL, weather},
    {"weekday", "is", NULL, weekday},
    {"hour", "is", NULL, hour},
    {"air", "is", NULL, air},
    {"place", "is", NULL, place},
    {"colour", "is", NULL, colours},
    {"thing", "is", "place", thing},
    {"side", "is", NULL, side},
    {"spot", "is", NULL, spot},
    {"wish", "do", NULL, wish},
    {"problem", "did|solved", NULL, problem},
    {"feeling", "is", NULL, feeling},
    {"cry", "is", NULL, cry},
    {"said", "did", NULL, said},
    {"helper", "is|he|him", NULL, helper},
    {"manner", "is", NULL, traits},
    {"tool", "is", "problem", tool},
    {"number", "is", NULL, numbers},
    {"unit", "is", NULL, unit},
    {"greeted", "did", NULL, greeted},
    {"food", "is", NULL, food},
    {"drink", "is", NULL, drink},
    {"mood", "is", NULL, mood},
    {"good", "is", NULL, good},
    {"bad", "is", NULL, bad},
    {NULL, NULL, NULL, NULL}};

/* ---- the lines ---- */

static const char *const opening[] = {
    "2*Once upon a time there was {a trait} {hero.child} of {age} named {hero}, who lived "
    "with {hero.his} {kin}.",
    "{hero} was {a trait} {hero.child} of {age} and lived with {hero.his} {kin}.",
    "{hero}, {a trait} {hero.child} of {age}, lived with {hero.his} {kin}.",
    "Once {a trait} {hero.child} of {age} named {hero} lived with {hero.his} {kin}.",
    "There was {a trait} {hero.child} of {age}. {Hero.he} was named {hero} and lived with "
    "{hero.his} {kin}.",
    "{A trait} {hero.child} of {age} lived with {hero.his} {kin}. {Hero.his} name was "
    "{hero}.",
    "{hero} lived with {hero.his} {kin}. {Hero.he} was {a trait} {hero.child} of {age}.",
    "Once there was {a trait} {hero.child} of {age}, {hero}, who lived with {hero.his} "
    "{kin}.",
    NULL};

static const char *const friend[] = {
    "{Hero.his} best friend was {pet}, {a size} {coat} {animal} who loved to {game}.",
    "{Hero.he} had {a size} {coat} {animal} named {pet} who loved to {game}.",
    "{Hero.he} had a friend, {pet} the {size} {coat} {animal}, who could {game}.",
    "{pet}, {a size} {coat} {animal}, came to {game} with {hero.him}.",
    "Every day {a size} {coat} {animal} named {pet} came to {game} with {hero.him}.",
    "With {pet}, {a size} {coat} {animal}, {hero.he} loved to {game}.",
    "{A size} {coat} {animal} named {pet} was there to {game} with {hero.him}.",
    "{Hero.he} went to {game} with {pet}, {a size} {coat} {animal}.",
    "{pet} was {hero.his} friend, {a size} {coat} {animal} who could {game}.",
    NULL};

static const char *const trip[] = {
    "On {a weather} {weekday} {hour} they went to the {air} {place}.",
    "One {weather} {weekday} {hour} {hero} took {pet} to the {air} {place}.",
    "It was {a weather} {weekday} {hour}, so they ran to the {air} {place}.",
    "They saw the {air} {place} on {a weather} {weekday} {hour}.",
    "{A weather} {weekday} {hour} took them to the {air} {place}.",
    "They loved the {air} {place} and went there on {a weather} {weekday} {hour}.",
    "{hero} and {pet} went to the {air} {place} one {weather} {weekday} {hour}.",
    "One {weather} {weekday} {hour} they ran to the {air} {place}.",
    NULL};

static const char *const find[] = {
    "2*There {pet} saw {a colour} {thing} {side} {a spot}.",
    "{Side} {a spot} they saw {a colour} {thing}.",
    "Soon {hero} saw {a colour} {thing} {side} {a spot}.",
    "{A colour} {thing} lay {side} {a spot}.",
    "\"Look, {a colour} {thing} {side} {a spot}!\" said {hero}.",
    "What was that {side} {a spot}? {A colour} {thing}!",
    "{pet} ran to {a colour} {thing} {side} {a spot}.",
    "{hero} ran to {a colour} {thing} {side} {a spot}.",
    "They saw {a colour} {thing} {side} {a spot}.",
    NULL};

static const char *const trouble[] = {
    "{hero} wanted to {wish} it, but {pet} {problem}.",
    "They went to {wish} it, but then {pet} {problem}.",
    "\"Let us {wish} it,\" said {hero}, but {pet} {problem}.",
    "As {hero} tried to {wish} it, {pet} {problem}.",
    "\"May I {wish} it?\" asked {hero}. Then {pet} {problem}.",
    "{Hero.he} went to {wish} it. Then {pet} {problem}.",
    "They loved it and wanted to {wish} it, but {pet} {problem}.",
    "\"Can we {wish} it?\" said {hero}. Then {pet} {problem}.",
    NULL};

static const char *const alarmed[] = {
    "\"{cry}!\" {said} {hero}, who felt {feeling}.",
    "{hero} felt {feeling}. \"{cry}!\" {hero.he} {said}.",
    "\"{cry}!\" {hero.he} {said} in {a feeling} voice.",
    "{Hero.he} was {feeling} and {said}, \"{cry}!\"",
    "Poor {hero} was {feeling} and {said}, \"{cry}!\"",
    "That made {hero.him} {feeling}. \"{cry}!\" {hero.he} {said}.",
    "{hero} {said}, \"{cry}!\" {Hero.he} felt {feeling}.",
    "\"{cry}!\" they {said}. {hero} felt {feeling}.",
    NULL};

static const char *const rescue[] = {"Then {a manner} {helper} came with {a tool}.",
                                     "Soon {a manner} {helper} brought {a tool}.",
                                     "{A manner} {helper} ran over with {a tool}.",
                                     "They saw {a manner} {helper} who had {a tool}.",
                                     "\"Take my {tool},\" said {a manner} {helper}.",
                                     "{hero} asked {a manner} {helper} for {a tool}.",
                                     "Who could help? {A manner} {helper} with {a tool}!",
                                     "There was {a manner} {helper} with {a tool}.",
                                     "{A manner} {helper} gave them {a tool}.",
                                     NULL};

static const char *const turn[] = {
    "After {number} {unit} {pet} {problem.solved}.",
    "It took {number} {unit}, but {pet} {problem.solved}.",
    "With the {tool}, {pet} {problem.solved} after {number} {unit}.",
    "In {number} {unit} {pet} {problem.solved}.",
    "The {helper} used the {tool}, and in {number} {unit} {pet} {problem.solved}.",
    "They used the {tool}, and in {number} {unit} {pet} {problem.solved}.",
    "{hero} used the {tool} for {number} {unit}, and {pet} {problem.solved}.",
    NULL};

static const char *const thanks[] = {
    "{hero} {greeted} the {helper} and gave {helper.him} the {colour} {thing}.",
    "{Hero.he} {greeted} {helper.him} and gave {helper.him} the {thing}.",
    "They {greeted} the {helper}, who got the {colour} {thing}.",
    "{pet} {greeted} the {helper}, and {hero} gave {helper.him} the {thing}.",
    "{hero} {greeted} {helper.him}. The {colour} {thing} was {hero.his} gift.",
    "They {greeted} {helper.him}, and {helper.he} could keep the {thing}.",
    "{hero} and {pet} {greeted} the {helper}, who got the {thing}.",
    "{Hero.he} gave the {helper} the {colour} {thing} and {greeted} {helper.him}.",
    NULL};

static const char *const ending[] = {
    "At home {hero.his} {kin} made {food} and {drink}. {hero} felt {mood}, for {good} "
    "beats {bad}.",
    "They shared {food} and {drink}, felt {mood}, and saw that {good} beats {bad}.",
    "Over {food} and {drink} {hero.he} felt {mood}. Yes, {good} beats {bad}.",
    "That night they had {food} and {drink}. \"I am {mood},\" said {hero}, \"for {good} "
    "beats {bad}.\"",
    "Home again, they had {food} and {drink} and felt {mood}: {good} beats {bad}.",
    "{Hero.his} {kin} gave them {food} and {drink}. They felt {mood}, for {good} beats "
    "{bad}.",
    "They had {food} and {drink} at home. All felt {mood}, for {good} beats {bad}.",
    "\"I am {mood},\" said {hero} over {food} and {drink}. Yes, {good} beats {bad}.",
    NULL};

const zero_story_variable zero_story_lines[] = {{"opening", "text", NULL, opening},
                                                {"friend", "text", NULL, friend},
                                                {"trip", "text", NULL, trip},
                                                {"find", "text", NULL, find},
                                                {"trouble", "text", NULL, trouble},
                                                {"alarm", "text", NULL, alarmed},
                                                {"rescue", "text", NULL, rescue},
                                                {"turn", "text", NULL, turn},
                                                {"thanks", "text", NULL, thanks},
                                                {"ending", "text", NULL, ending},
                                                {NULL, NULL, NULL, NULL}};
