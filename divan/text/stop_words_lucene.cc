// Stop words of Apache Lucene 4.10 (https://lucene.apache.org), Copyright 2014 The Apache Software
// Foundation, under the Apache License 2.0, which is that of this repository too. The Catalan ones are from
// https://github.com/vcl/cue.language (Apache License 2.0), the English ones the same as of Lucene's
// StandardAnalyzer. Changed here: without comments, and in one string for each language.
#include "divan/text/stop_words_data.h"

namespace divan::text {

extern const std::string_view kEnglishStopWords =
    R"(a an and are as at be but by for if in into is it no not of on or such that the their then there )"
    R"(these they this to was will with )";

extern const std::string_view kCjkStopWords =
    R"(a and are as at be but by for if in into is it no not of on or s such t that the their then there )"
    R"(these they this to was will with www )";

extern const std::string_view kArmenianStopWords =
    R"(այդ այլ այն այս դու դուք եմ են ենք ես եք է էի էին էինք էիր էիք էր ըստ թ ի ին իսկ իր կամ համար հետ )"
    R"(հետո մենք մեջ մի ն նա նաև նրա նրանք որ որը որոնք որպես ու ում պիտի վրա և )";

extern const std::string_view kBasqueStopWords =
    R"(al anitz arabera asko baina bat batean batek bati batzuei batzuek batzuetan batzuk bera beraiek )"
    R"(berau berauek bere berori beroriek beste bezala da dago dira ditu du dute edo egin ere eta eurak ez )"
    R"(gainera gu gutxi guzti haiei haiek haietan hainbeste hala han handik hango hara hari hark hartan hau )"
    R"(hauei hauek hauetan hemen hemendik hemengo hi hona honek honela honetan honi hor hori horiei horiek )"
    R"(horietan horko horra horrek horrela horretan horri hortik hura izan ni noiz nola non nondik nongo )"
    R"(nor nora ze zein zen zenbait zenbat zer zergatik ziren zituen zu zuek zuen zuten )";

extern const std::string_view kBrazilianStopWords =
    R"(a ainda alem ambas ambos antes ao aonde aos apos aquele aqueles as assim com como contra contudo )"
    R"(cuja cujas cujo cujos da das de dela dele deles demais depois desde desta deste dispoe dispoem )"
    R"(diversa diversas diversos do dos durante e ela elas ele eles em entao entre essa essas esse esses )"
    R"(esta estas este estes ha isso isto logo mais mas mediante menos mesma mesmas mesmo mesmos na nas nao )"
    R"(nem nesse neste nos o os ou outra outras outro outros pelas pelo pelos perante pois por porque )"
    R"(portanto proprio propios quais qual qualquer quando quanto que quem quer se seja sem sendo seu seus )"
    R"(sob sobre sua suas tal tambem teu teus toda todas todo todos tua tuas tudo um uma umas uns )";

extern const std::string_view kCatalanStopWords =
    R"(a abans ací ah així això al als aleshores algun alguna algunes alguns alhora allà allí allò altra )"
    R"(altre altres amb ambdós ambdues apa aquell aquella aquelles aquells aquest aquesta aquestes aquests )"
    R"(aquí baix cada cadascú cadascuna cadascunes cadascuns com contra d'un d'una d'unes d'uns dalt de del )"
    R"(dels des després dins dintre donat doncs durant e eh el els em en encara ens entre érem eren éreu es )"
    R"(és esta està estàvem estaven estàveu esteu et etc ets fins fora gairebé ha han has havia he hem heu )"
    R"(hi ho i igual iguals ja l'hi la les li li'n llavors m'he ma mal malgrat mateix mateixa mateixes )"
    R"(mateixos me mentre més meu meus meva meves molt molta moltes molts mon mons n'he n'hi ne ni no )"
    R"(nogensmenys només nosaltres nostra nostre nostres o oh oi on pas pel pels per però perquè poc poca )"
    R"(pocs poques potser propi qual quals quan quant que què quelcom qui quin quina quines quins s'ha )"
    R"(s'han sa semblant semblants ses seu seus seva seves si sobre sobretot sóc solament sols son són sons )"
    R"(sota sou t'ha t'han t'he ta tal també tampoc tan tant tanta tantes teu teus teva teves ton tons tot )"
    R"(tota totes tots un una unes uns us va vaig vam van vas veu vosaltres vostra vostre vostres )";

extern const std::string_view kCzechStopWords =
    R"(a s k o i u v z dnes cz tímto budeš budem byli jseš můj svým ta tomto tohle tuto tyto jej zda proč )"
    R"(máte tato kam tohoto kdo kteří mi nám tom tomuto mít nic proto kterou byla toho protože asi ho naši )"
    R"(napište re což tím takže svých její svými jste aj tu tedy teto bylo kde ke pravé ji nad nejsou či )"
    R"(pod téma mezi přes ty pak vám ani když však neg jsem tento článku články aby jsme před pta jejich )"
    R"(byl ještě až bez také pouze první vaše která nás nový tipy pokud může strana jeho své jiné zprávy )"
    R"(nové není vás jen podle zde už být více bude již než který by které co nebo ten tak má při od po )"
    R"(jsou jak další ale si se ve to jako za zpět ze do pro je na atd atp jakmile přičemž já on ona ono )"
    R"(oni ony my vy jí mě mne jemu tomu těm těmu němu němuž jehož jíž jelikož jež jakož načež )";

extern const std::string_view kGalicianStopWords =
    R"(a aínda alí aquel aquela aquelas aqueles aquilo aquí ao aos as así á ben cando che co coa comigo con )"
    R"(connosco contigo convosco coas cos cun cuns cunha cunhas da dalgunha dalgunhas dalgún dalgúns das de )"
    R"(del dela delas deles desde deste do dos dun duns dunha dunhas e el ela elas eles en era eran esa )"
    R"(esas ese eses esta estar estaba está están este estes estiven estou eu é facer foi foron fun había )"
    R"(hai iso isto la las lle lles lo los mais me meu meus min miña miñas moi na nas neste nin no non nos )"
    R"(nosa nosas noso nosos nós nun nunha nuns nunhas o os ou ó ós para pero pode pois pola polas polo )"
    R"(polos por que se senón ser seu seus sexa sido sobre súa súas tamén tan te ten teñen teño ter teu )"
    R"(teus ti tido tiña tiven túa túas un unha unhas uns vos vosa vosas voso vosos vós )";

extern const std::string_view kGreekStopWords =
    R"(ο η το οι τα του τησ των τον την και κι κ ειμαι εισαι ειναι ειμαστε ειστε στο στον στη στην μα αλλα )"
    R"(απο για προσ με σε ωσ παρα αντι κατα μετα θα να δε δεν μη μην επι ενω εαν αν τοτε που πωσ ποιοσ ποια )"
    R"(ποιο ποιοι ποιεσ ποιων ποιουσ αυτοσ αυτη αυτο αυτοι αυτων αυτουσ αυτεσ αυτα εκεινοσ εκεινη εκεινο )"
    R"(εκεινοι εκεινεσ εκεινα εκεινων εκεινουσ οπωσ ομωσ ισωσ οσο οτι )";

extern const std::string_view kIndonesianStopWords =
    R"(ada adanya adalah adapun agak agaknya agar akan akankah akhirnya aku akulah amat amatlah anda )"
    R"(andalah antar diantaranya antara antaranya diantara apa apaan mengapa apabila apakah apalagi apatah )"
    R"(atau ataukah ataupun bagai bagaikan sebagai sebagainya bagaimana bagaimanapun sebagaimana )"
    R"(bagaimanakah bagi bahkan bahwa bahwasanya sebaliknya banyak sebanyak beberapa seberapa begini )"
    R"(beginian beginikah beginilah sebegini begitu begitukah begitulah begitupun sebegitu belum belumlah )"
    R"(sebelum sebelumnya sebenarnya berapa berapakah berapalah berapapun betulkah sebetulnya biasa )"
    R"(biasanya bila bilakah bisa bisakah sebisanya boleh bolehkah bolehlah buat bukan bukankah bukanlah )"
    R"(bukannya cuma percuma dahulu dalam dan dapat dari daripada dekat demi demikian demikianlah )"
    R"(sedemikian dengan depan di dia dialah dini diri dirinya terdiri dong dulu enggak enggaknya entah )"
    R"(entahlah terhadap terhadapnya hal hampir hanya hanyalah harus haruslah harusnya seharusnya hendak )"
    R"(hendaklah hendaknya hingga sehingga ia ialah ibarat ingin inginkah inginkan ini inikah inilah itu )"
    R"(itukah itulah jangan jangankan janganlah jika jikalau juga justru kala kalau kalaulah kalaupun )"
    R"(kalian kami kamilah kamu kamulah kan kapan kapankah kapanpun dikarenakan karena karenanya ke kecil )"
    R"(kemudian kenapa kepada kepadanya ketika seketika khususnya kini kinilah kiranya sekiranya kita )"
    R"(kitalah kok lagi lagian selagi lah lain lainnya melainkan selaku lalu melalui terlalu lama lamanya )"
    R"(selama selamanya lebih terlebih bermacam macam semacam maka makanya makin malah malahan mampu )"
    R"(mampukah mana manakala manalagi masih masihkah semasih masing mau maupun semaunya memang mereka )"
    R"(merekalah meski meskipun semula mungkin mungkinkah nah namun nanti nantinya nyaris oleh olehnya )"
    R"(seorang seseorang pada padanya padahal paling sepanjang pantas sepantasnya sepantasnyalah para pasti )"
    R"(pastilah per pernah pula pun merupakan rupanya serupa saat saatnya sesaat saja sajalah saling )"
    R"(bersama sama sesama sambil sampai sana sangat sangatlah saya sayalah se sebab sebabnya sebuah )"
    R"(tersebut tersebutlah sedang sedangkan sedikit sedikitnya segala segalanya segera sesegera sejak )"
    R"(sejenak sekali sekalian sekalipun sesekali sekaligus sekarang sekitar sekitarnya sela selain selalu )"
    R"(seluruh seluruhnya semakin sementara sempat semua semuanya sendiri sendirinya seolah seperti )"
    R"(sepertinya sering seringnya serta siapa siapakah siapapun disini disinilah sini sinilah sesuatu )"
    R"(sesuatunya suatu sesudah sesudahnya sudah sudahkah sudahlah supaya tadi tadinya tak tanpa setelah )"
    R"(telah tentang tentu tentulah tentunya tertentu seterusnya tapi tetapi setiap tiap setidaknya tidak )"
    R"(tidakkah tidaklah toh waduh wah wahai sewaktu walau walaupun wong yaitu yakni yang )";

extern const std::string_view kIrishStopWords =
    R"(a ach ag agus an aon ar arna as b' ba beirt bhúr caoga ceathair ceathrar chomh chtó chuig chun cois )"
    R"(céad cúig cúigear d' daichead dar de deich deichniúr den dhá do don dtí dá dár dó faoi faoin faoina )"
    R"(faoinár fara fiche gach gan go gur haon hocht i iad idir in ina ins inár is le leis lena lenár m' )"
    R"(mar mo mé na nach naoi naonúr ná ní níor nó nócha ocht ochtar os roimh sa seacht seachtar seachtó )"
    R"(seasca seisear siad sibh sinn sna sé sí tar thar thú triúr trí trína trínár tríocha tú um ár é éis í )"
    R"(ó ón óna ónár )";

extern const std::string_view kLatvianStopWords =
    R"(aiz ap ar apakš ārpus augšpus bez caur dēļ gar iekš iz kopš labad lejpus līdz no otrpus pa par pār )"
    R"(pēc pie pirms pret priekš starp šaipus uz viņpus virs virspus zem apakšpus un bet jo ja ka lai tomēr )"
    R"(tikko turpretī arī kaut gan tādēļ tā ne tikvien vien kā ir te vai kamēr diezin droši diemžēl nebūt )"
    R"(ik it taču nu pat tiklab iekšpus nedz tik nevis turpretim jeb iekam iekām iekāms kolīdz līdzko )"
    R"(tiklīdz jebšu tālab tāpēc nekā itin jā jau jel nē nezin tad tikai vis tak iekams būt biju biji bija )"
    R"(bijām bijāt esmu esi esam esat būšu būsi būs būsim būsiet tikt tiku tiki tika tikām tikāt tieku tiec )"
    R"(tiek tiekam tiekat tikšu tiks tiksim tiksiet tapt tapi tapāt topat tapšu tapsi taps tapsim tapsiet )"
    R"(kļūt kļuvu kļuvi kļuva kļuvām kļuvāt kļūstu kļūsti kļūst kļūstam kļūstat kļūšu kļūsi kļūs kļūsim )"
    R"(kļūsiet varēt varēju varējām varēšu varēsim var varēji varējāt varēsi varēsiet varat varēja varēs )";

extern const std::string_view kThaiStopWords =
    R"(ไว้ ไม่ ไป ได้ ให้ ใน โดย แห่ง แล้ว และ แรก แบบ แต่ เอง เห็น เลย เริ่ม เรา เมื่อ เพื่อ เพราะ เป็นการ )"
    R"(เป็น เปิดเผย เปิด เนื่องจาก เดียวกัน เดียว เช่น เฉพาะ เคย เข้า เขา อีก อาจ อะไร ออก อย่าง อยู่ อยาก )"
    R"(หาก หลาย หลังจาก หลัง หรือ หนึ่ง ส่วน ส่ง สุด สําหรับ ว่า วัน ลง ร่วม ราย รับ ระหว่าง รวม ยัง มี มาก )"
    R"(มา พร้อม พบ ผ่าน ผล บาง น่า นี้ นํา นั้น นัก นอกจาก ทุก ที่สุด ที่ ทําให้ ทํา ทาง ทั้งนี้ ทั้ง ถ้า )"
    R"(ถูก ถึง ต้อง ต่างๆ ต่าง ต่อ ตาม ตั้งแต่ ตั้ง ด้าน ด้วย ดัง ซึ่ง ช่วง จึง จาก จัด จะ คือ ความ ครั้ง )"
    R"(คง ขึ้น ของ ขอ ขณะ ก่อน ก็ การ กับ กัน กว่า กล่าว )";

extern const std::string_view kTurkishStopWords =
    R"(acaba altmış altı ama ancak arada aslında ayrıca bana bazı belki ben benden beni benim beri beş bile )"
    R"(bin bir birçok biri birkaç birkez birşey birşeyi biz bize bizden bizi bizim böyle böylece bu buna )"
    R"(bunda bundan bunlar bunları bunların bunu bunun burada çok çünkü da daha dahi de defa değil diğer )"
    R"(diye doksan dokuz dolayı dolayısıyla dört edecek eden ederek edilecek ediliyor edilmesi ediyor eğer )"
    R"(elli en etmesi etti ettiği ettiğini gibi göre halen hangi hatta hem henüz hep hepsi her herhangi )"
    R"(herkesin hiç hiçbir için iki ile ilgili ise işte itibaren itibariyle kadar karşın katrilyon kendi )"
    R"(kendilerine kendini kendisi kendisine kendisini kez ki kim kimden kime kimi kimse kırk milyar milyon )"
    R"(mu mü mı nasıl ne neden nedenle nerde nerede nereye niye niçin o olan olarak oldu olduğu olduğunu )"
    R"(olduklarını olmadı olmadığı olmak olması olmayan olmaz olsa olsun olup olur olursa oluyor on ona )"
    R"(ondan onlar onlardan onları onların onu onun otuz oysa öyle pek rağmen sadece sanki sekiz seksen sen )"
    R"(senden seni senin siz sizden sizi sizin şey şeyden şeyi şeyler şöyle şu şuna şunda şundan şunları )"
    R"(şunu tarafından trilyon tüm üç üzere var vardı ve veya ya yani yapacak yapılan yapılması yapıyor )"
    R"(yapmak yaptı yaptığı yaptığını yaptıkları yedi yerine yetmiş yine yirmi yoksa yüz zaten )";

}  // namespace divan::text
